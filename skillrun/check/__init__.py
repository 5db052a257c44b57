"""Checking skills and profiles: rules, one a file; what is accepted (lock, baseline, ignores); what a change changes."""
