"""The only place that reads data sets."""
