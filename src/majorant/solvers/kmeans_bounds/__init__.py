"""How low can a sum of squares be? Provable lower bounds for k-means."""
