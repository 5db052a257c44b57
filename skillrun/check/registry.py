"""Registry: all rules in one explicit list, in the order of `skillrun rule`."""

from __future__ import annotations

from typing import Final

from skillrun.check.rules import (
    baseline_stale,
    broad_request,
    ceiling_idle,
    exfiltration_pair,
    flow,
    ignore_unused,
    ignore_without_reason,
    interpreter_missing,
    link_out,
    lock_file,
    lock_permission,
    lock_stale,
    loose_modes,
    near_key,
    nested_skill,
    not_checked,
    not_locked,
    other_problem,
    path_in_skill_only,
    policy_changed,
    refused_variable,
    request_invalid,
    request_narrowed,
    request_refused,
    request_unread,
    same_key,
    script_unparsable,
    skill_unreadable,
    spec_description,
    spec_name,
    spec_unknown_key,
    undeclared_env,
    undeclared_home,
    undeclared_network,
    undeclared_program,
    undeclared_read,
    undeclared_write,
    unlisted_trust,
    unused_network,
    windows_line_end,
    write_to_skill,
)

RULES: Final = tuple(
    module.RULE
    for module in (
        # what can't be read
        skill_unreadable, request_invalid, near_key, request_unread, script_unparsable, not_checked,
        # what is asked for
        request_refused, request_narrowed, broad_request, exfiltration_pair, flow, unlisted_trust, refused_variable,
        path_in_skill_only,
        # what scripts do
        undeclared_network, unused_network, undeclared_read, undeclared_write, undeclared_home, write_to_skill,
        undeclared_env, undeclared_program,
        # what lies in the folder
        link_out, loose_modes, interpreter_missing, windows_line_end,
        # what guards it
        policy_changed, not_locked, lock_permission, lock_file, lock_stale, baseline_stale, ignore_without_reason,
        ignore_unused, ceiling_idle,
        # the specification
        spec_name, spec_description, spec_unknown_key, same_key, nested_skill, other_problem,
    )
)  # fmt: skip
BY_NAME: Final = {rule.name: rule for rule in RULES}
