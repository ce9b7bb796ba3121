"""Jobs on Kubernetes: an image with the model files, and a RayJob in which the elastic runtime runs."""
