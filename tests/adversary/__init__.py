"""Random attacks on elimina: each seed makes one case, which brute force or another oracle answers, too.

``python -m tests.adversary --minutes 60`` runs for hours, pytest for a minute.
"""
