"""The Linux backend: policy to launch plan."""
