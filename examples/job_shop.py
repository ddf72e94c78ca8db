"""The shortest schedule of a job shop, FT06 of Fisher and Thompson (1963): 55 hours (`python examples/job_shop.py`)."""

from __future__ import annotations

from elimina import cp

JOBS = [  # what each job needs in turn: a machine, and hours on it
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]


def schedule() -> cp.Result:
    """Return the best schedule; the variable ``s[j,k]`` is when job j begins its k-th task."""
    model = cp.Model()
    horizon = sum(hours for job in JOBS for _, hours in job)
    starts = [[model.int_var(0, horizon, f"s[{j},{k}]") for k in range(len(job))] for j, job in enumerate(JOBS)]
    for job, begins in zip(JOBS, starts, strict=True):
        for (_, hours), begin, following in zip(job, begins, begins[1:], strict=False):
            model.add(begin + hours <= following)
    for machine in range(6):
        tasks = [
            (begins[k], hours)
            for job, begins in zip(JOBS, starts, strict=True)
            for k, (where, hours) in enumerate(job)
            if where == machine
        ]
        model.cumulative([begin for begin, _ in tasks], [hours for _, hours in tasks], [1] * len(tasks), 1)
    model.minimize(model.maximum([begins[-1] + job[-1][1] for job, begins in zip(JOBS, starts, strict=True)]))
    result = model.solve(options=cp.SearchOptions(free=True))
    for j, begins in enumerate(starts):
        print(f"job {j}: begins its tasks at", *result[begins])
    return result


if __name__ == "__main__":
    found = schedule()
    print(found.status, found.value)
