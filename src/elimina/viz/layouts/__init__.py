"""Layouts of graphs: layers for directed ones, distances for undirected ones, and trees."""
