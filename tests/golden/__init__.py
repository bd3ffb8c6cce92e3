"""Golden traces: what every method proposed at a known commit, to refactor against."""
