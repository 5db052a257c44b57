"""Checking skills: rules, one a file; what is accepted (lock, baseline, ignores); what a change changes."""
