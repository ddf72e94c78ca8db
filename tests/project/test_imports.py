"""No two modules import each other in a circle, and each import inside a function has its measured reason."""

from __future__ import annotations

from tests.imports import circles, imports, library_imports

MILLISECONDS = {
    "elimina.api -> elimina.methods.best_assignments": 10,
    "elimina.api -> elimina.methods.model_sampling": 80,
    "elimina.api -> elimina.strategies.call_plan": 13.6,
    "elimina.backends.cpu -> elimina.backends.disk_session": 8.1,
    "elimina.backends.cpu -> elimina.backends.sparse.cpu": 1.9,
    "elimina.backends.cpu -> elimina.backends.sparse.session": 7.8,
    "elimina.backends.device_group -> elimina.backends.sharded_session": 4.7,
    "elimina.backends.registry -> elimina.backends.cuda.backend": 80,
    "elimina.calibration -> elimina.backends.cuda.backend": 64,
    "elimina.cli -> elimina.cli.commands": 45,
    "elimina.cli.cases -> elimina.distributed": 95,
    "elimina.cli.commands -> elimina.arguments": 122,
    "elimina.cli.dcop -> elimina.distributed": 122,
    "elimina.cli.dcop -> elimina.viz.timeline": 36,
    "elimina.cli.flatzinc -> elimina.cp.conflicts": 168,
    "elimina.cli.flatzinc -> elimina.cp.flatzinc_bounds": 121,
    "elimina.cli.flatzinc -> elimina.cp.gpu_filtering": 168,
    "elimina.cli.flatzinc -> elimina.errors": 0.3,
    "elimina.cli.flatzinc -> elimina.io.files": 149,
    "elimina.cli.grouped_options -> elimina.problem.tasks": 143,
    "elimina.cli.model_input -> elimina.cp.reading": 13,
    "elimina.cli.model_input -> elimina.dcop": 31,
    "elimina.cli.options -> elimina.distributed": 166,
    "elimina.cli.plot -> elimina.cp.tsplib": 15,
    "elimina.cli.plot -> elimina.reporting": 126,
    "elimina.cli.solve -> elimina.cli.bound_traces": 1.7,
    "elimina.cli.solve -> elimina.cli.cases": 71,
    "elimina.cli.solve -> elimina.distributed": 133,
    "elimina.cli.solve -> elimina.io.posteriors": 2.2,
    "elimina.cli.solve -> elimina.planning.tree_statistics": 2.4,
    "elimina.cli.model_output -> elimina.dcop": 56.9,
    "elimina.cli.model_output -> elimina.dcop.formats": 53.5,
    "elimina.cp.gpu_filtering -> elimina.backends.cuda.backend": 128,
    "elimina.cp.gpu_filtering -> elimina.backends.cuda.kernels": 7.6,
    "elimina.cp.model -> elimina.cp.to_graphical": 10.1,
    "elimina.cp.reading -> elimina.cp.xcsp3.reader": 25,
    "elimina.cp.search_run -> elimina.cp.bound_schedule": 54,
    "elimina.io.cfn -> elimina.io.cfn_functions": 4.1,
    "elimina.methods.belief_waves -> elimina.backends.cuda.message_waves": 27,
    "elimina.methods.case_queries -> elimina.methods.batch": 6.5,
    "elimina.methods.case_queries -> elimina.methods.estimated_batch": 11,
    "elimina.methods.case_queries -> elimina.methods.row_assignments": 13,
    "elimina.methods.explanation_queries -> elimina.methods.evidence_cases": 2.0,
    "elimina.methods.explanation_queries -> elimina.methods.observation_impact": 5.3,
    "elimina.methods.explanation_queries -> elimina.methods.observation_value": 5.8,
    "elimina.methods.explanation_queries -> elimina.methods.parameter_sensitivity": 2.9,
    "elimina.methods.explanation_queries -> elimina.methods.relevant_explanation": 3.2,
    "elimina.methods.junction_tree -> elimina.methods.sampling": 1.5,
    "elimina.methods.optimum -> elimina.methods.slice_bounds": 10.4,
    "elimina.methods.slice_bounds -> elimina.methods.and_or_search": 25,
    "elimina.methods.slice_bounds -> elimina.methods.cost_shifting": 10,
    "elimina.planning.option_checks -> elimina.planning.tiers": 3.4,
    "elimina.running.mini_bucket_plans -> elimina.running.content_partition": 2.6,
    "elimina.running.plan_choice -> elimina.running.shared_plans": 2.5,
    "elimina.running.propagated_tables -> elimina.io.posteriors": 20,
    "elimina.strategies.answering -> elimina.running.checkpoint": 7.2,
    "elimina.strategies.answering -> elimina.strategies.portfolio": 13.1,
    "elimina.strategies.answering -> elimina.strategies.strategy": 0.9,
    "elimina.strategies.answering -> elimina.strategies.task_portfolio": 20.9,
    "elimina.strategies.call_plan -> elimina.methods.cost_shifting": 15,
    "elimina.strategies.call_plan -> elimina.methods.junction_structure": 5.6,
    "elimina.strategies.elimination -> elimina.methods.task_bounds": 13,
    "elimina.strategies.facts -> elimina.methods.filtering": 40,
    "elimina.strategies.marginal_map -> elimina.methods.weighted_mini_buckets": 17,
    "elimina.strategies.portfolio -> elimina.methods.cost_shifting": 14,
    "elimina.strategies.portfolio -> elimina.methods.local_search": 2.3,
    "elimina.strategies.portfolio -> elimina.methods.marginals": 21,
    "elimina.strategies.portfolio -> elimina.methods.mini_buckets": 9.4,
    "elimina.strategies.portfolio -> elimina.methods.weighted_mini_buckets": 22,
    "elimina.strategies.posterior_bounds -> elimina.methods.marginal_bounds": 14,
}
"""Processor time that each import of the package's own modules inside a function keeps out of start-up
(``python -m tests.import_times``): none is added without a line, and none without need."""


LIBRARY_MILLISECONDS = {
    "elimina.answer_texts -> json": 1.8,
    "elimina.answer_texts -> shutil": 2.4,
    "elimina.arguments -> difflib": 1.3,
    "elimina.arguments -> fractions": 1.5,
    "elimina.arguments -> pathlib": 6.3,
    "elimina.backends.cpu_session -> mmap": 0.4,
    "elimina.backends.scratch -> tempfile": 4.0,
    "elimina.cli.question_inputs -> json": 1.3,
    "elimina.cli.terminal -> shutil": 1.8,
    "elimina.dcop.formats.yamltree -> difflib": 0.7,
    "elimina.display -> html": 1.3,
    "elimina.io.files -> difflib": 1.0,
    "elimina.io.files -> gzip": 1.0,
    "elimina.io.files -> lzma": 0.9,
    "elimina.io.files -> zlib": 0.3,
    "elimina.io.posteriors -> gzip": 0.8,
    "elimina.io.posteriors -> lzma": 0.9,
    "elimina.io.xml_documents -> xml.parsers": 0.8,
    "elimina.io.xml_roots -> xml.parsers": 0.7,
    "elimina.io.xmlbif -> xml.sax.saxutils": 26.1,
    "elimina.methods.mini_buckets -> array": 0.3,
    "elimina.model.model -> fractions": 1.6,
    "elimina.model.senses -> fractions": 1.5,
    "elimina.planning.machine -> json": 1.5,
    "elimina.planning.order -> pathlib": 3.3,
    "elimina.planning.ordering -> random": 0.9,
    "elimina.planning.plan -> json": 1.6,
    "elimina.progress -> html": 1.3,
    "elimina.running.checkpoint -> hashlib": 3.0,
    "elimina.viz.export -> xml.sax.saxutils": 22.3,
}
"""The same for imports of the standard library inside functions."""


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == []


def test_imports_inside_functions_are_listed_with_their_time():
    inside = {f"{edge.importer} -> {edge.imported}" for edge in imports() if edge.is_inside_function}
    assert inside == set(MILLISECONDS)
    assert {f"{edge.importer} -> {edge.imported}" for edge in library_imports()} == set(LIBRARY_MILLISECONDS)
