"""XCSP3: the constraints of its core, and an objective (Audemard, Boussemart, Lecoutre, Piette and Roussel, 2022)."""
