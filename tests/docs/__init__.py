"""The documentation, run: what a page says to type works, and prints what the page shows."""
