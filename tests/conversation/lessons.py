"""What other teams learned about calls that wait (facts/agents B5), and what holds it here: tests, or a reason.

A test is named by its file below `tests/` and its function; `test_lessons.py` looks whether each is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson: the thread it comes from, what it says, and the tests that hold it or the reason why none does."""

    thread: str
    says: str
    tests: tuple[str, ...] = ()
    reason: str = ""


SEED: Final = "conversation/test_seed_waiting.py::"
ASKING: Final = "conversation/test_seed_asking.py::"
CHANGED: Final = "conversation/test_changed_since.py::"
KILLS: Final = "conversation/test_kills.py::"
AT_ONCE: Final = "conversation/test_two_at_once.py::"
CLAIMS: Final = "conversation/test_claims.py::"
FILE: Final = "conversation/test_store_file.py::"
EVERY: Final = "conversation/test_every_call.py::"
RANDOM: Final = "conversation/test_random_states.py::"
SCRIPTS: Final = "conversation/test_scripts_that_ask.py::"

ADAPTERS: Final = (
    "what a provider is sent is the model adapters' matter: their validators and stand-in servers hold it"
)

LESSONS: Final[dict[int, Lesson]] = {
    1: Lesson("openai-agents-python#4244", "approvals live in the store, not in objects callers rebuild",
              (SEED + "test_issue_refund_waits_and_is_made_once_after_a_yes", SEED + "test_it_pauses_in_one_process_and_ends_in_another")),
    2: Lesson("openai-agents-python#3004", "what a provider has is not guessed: the whole history is sent each time",
              (SEED + "test_a_no_is_a_result_that_the_model_reads",), ADAPTERS),
    3: Lesson("openai-agents-js#1435", "a second approval does not send the first output again",
              (EVERY + "test_a_hundred_calls_side_by_side_keep_their_order",), ADAPTERS),
    4: Lesson("openai-agents-js#1418", "the decision is stored; a resolver only reads",
              (SEED + "test_a_resolver_is_asked_many_times_and_never_at_definition", SEED + "test_what_is_no_plain_yes_from_a_resolver_is_no_word")),
    5: Lesson("openai-agents-python#2501", "keys are scoped by conversation",
              (FILE + "test_to_forget_a_conversation_takes_its_files_and_no_others", CHANGED + "test_a_word_is_good_for_one_call")),
    6: Lesson("pydantic-ai#3350", "absence is never consent",
              (SEED + "test_issue_refund_waits_and_is_made_once_after_a_yes", SEED + "test_what_is_no_plain_yes_from_a_resolver_is_no_word")),
    7: Lesson("pydantic-ai#7624", "answers are typed and held against what was asked",
              (ASKING + "test_ask_team_asks_one_question_after_the_other", ASKING + "test_a_page_to_visit")),
    8: Lesson("pydantic-ai#5536", "reserved, then consumed: one execution an approval",
              (AT_ONCE + "test_two_who_agree_at_once_agree_once", RANDOM + "test_random_interleavings_in_memory")),
    9: Lesson("pydantic-ai#8181", "a resumed call finds its answer or stays parked",
              (ASKING + "test_resume_may_ask_and_is_not_begun_anew", ASKING + "test_ask_team_asks_one_question_after_the_other")),
    10: Lesson("agent-framework#6851", "an approval is consumed: no later turn runs it again",
               (SEED + "test_issue_refund_waits_and_is_made_once_after_a_yes", CHANGED + "test_a_word_is_good_for_one_call")),
    11: Lesson("agent-framework#4879", "one gated call does not gate the batch",
               (SEED + "test_a_no_is_a_result_that_the_model_reads", EVERY + "test_a_hundred_calls_side_by_side_keep_their_order")),
    12: Lesson("agent-framework#7452", "approvals never enter provider messages",
               (EVERY + "test_ids_are_made_unique_and_plain",), "a message holds what was said, replies and results; no type of it could hold an approval"),
    13: Lesson("langgraph#6208", "rows, and no replay of code: other calls are not made again",
               (SEED + "test_it_pauses_in_one_process_and_ends_in_another", ASKING + "test_another_question_at_the_same_place_is_an_error_and_no_wrong_answer")),
    14: Lesson("langchain#37093", "a refused call is never made",
               (SEED + "test_a_no_is_a_result_that_the_model_reads", AT_ONCE + "test_of_yes_and_no_at_once_one_counts")),
    15: Lesson("extra#139", "an approval is for these arguments, by digest and not by position",
               (CHANGED + "test_other_arguments_in_the_store_ask_again", CHANGED + "test_a_change_between_the_word_and_the_run_asks_again",
                CHANGED + "test_a_change_between_the_plan_and_the_start_asks_again", CHANGED + "test_another_workspace_asks_again")),
    16: Lesson("ha-mcp#2387", "one click authorises one call",
               (CHANGED + "test_a_word_is_good_for_one_call", AT_ONCE + "test_two_who_agree_at_once_agree_once")),
    17: Lesson("cadis#852", "compare and swap first: of two clicks one decides",
               (AT_ONCE + "test_of_yes_and_no_at_once_one_counts", AT_ONCE + "test_a_yes_at_the_last_moment_counts_or_is_refused")),
    18: Lesson("meho#2293", "exactly one resumes what was agreed to, and somebody does",
               (KILLS + "test_workers_that_are_killed_lose_no_call_and_make_none_twice", KILLS + "test_whoever_dies_in_a_decision_has_decided_or_not")),
    19: Lesson("Agenta#5592", "an approval is not spent by a run that never started",
               (CHANGED + "test_a_change_between_the_plan_and_the_start_asks_again", KILLS + "test_a_worker_that_dies_at_a_point_leaves_its_call_to_be_taken_over",
                CHANGED + "test_a_call_that_could_not_be_planned_is_asked_about_once_it_can")),
    20: Lesson("laravel/ai#809", "results are derived, so a resumed history has each of them",
               (RANDOM + "test_random_interleavings_on_disk", SEED + "test_it_pauses_in_one_process_and_ends_in_another"), ADAPTERS),
    21: Lesson("copilot-cli#3183", "a kill in the middle of a call poisons no session",
               (KILLS + "test_a_worker_that_dies_at_a_point_leaves_its_call_to_be_taken_over", EVERY + "test_ctrl_c_in_the_middle_of_a_call",
                CLAIMS + "test_a_harmless_call_is_made_three_times_and_then_asked_about")),
    22: Lesson("copilot-cli#4668", "a cancel reaches the worker, and a late result is refused",
               (AT_ONCE + "test_a_cancel_elsewhere_ends_the_script_here", CLAIMS + "test_a_late_result_is_dropped")),
    23: Lesson("adk-python#5450", "each call has its own state: to answer one touches no sibling",
               (SEED + "test_run_sub_agent_pauses_and_is_resumed_once_a_complete", SEED + "test_a_task_that_can_not_be_cancelled_keeps_no_other_from_it")),
    24: Lesson("qwen-code#8163", "no duplicate results, no duplicate ids",
               (EVERY + "test_ids_are_made_unique_and_plain", RANDOM + "test_random_interleavings_in_memory"), ADAPTERS),
    25: Lesson("claude-code#62396", "no result is ever an empty text",
               (EVERY + "test_junk_from_a_tool_is_a_result",)),
    26: Lesson("bagofwords#901", "images come behind the results of their round, and none is dropped",
               ("conversation/test_files.py::test_attachments_come_back_from_a_store", "conversation/test_files.py::test_a_file_that_is_gone_is_said_to_be"), ADAPTERS),
    27: Lesson("gemini-cli#4217", "all results of a round are one message, one for each call",
               (EVERY + "test_a_hundred_calls_side_by_side_keep_their_order",), ADAPTERS),
    28: Lesson("dbos-java#491", "recovery puts a call back, and the claim decides who makes it",
               (RANDOM + "test_random_interleavings_in_memory", KILLS + "test_workers_that_are_killed_lose_no_call_and_make_none_twice",
                SCRIPTS + "test_another_process_leaves_a_living_one_its_script_and_says_interrupted_once_it_is_dead")),
    29: Lesson("lion-reader#871", "a lease is longer than the run, also where the run had to wait",
               (CLAIMS + "test_a_long_run_keeps_its_claim_for_its_own_time", EVERY + "test_a_script_that_waited_long_for_its_turn_gets_a_new_claim_or_does_not_start")),
    30: Lesson("huey#253", "what a killed worker had is not lost, and nothing stays locked",
               (KILLS + "test_workers_that_are_killed_lose_no_call_and_make_none_twice", FILE + "test_a_full_disk_loses_nothing")),
    31: Lesson("hermes-agent#110847", "a write-ahead log only on a local disk",
               ("conversation/test_lessons.py::test_a_log_is_written_ahead_only_on_a_disk_of_this_machine",)),
    32: Lesson("filelock#635", "a connection does not go through a fork, and no lock is dropped by a second one",
               (CLAIMS + "test_a_fork_with_an_open_store", CLAIMS + "test_a_second_store_on_the_file_drops_no_lock")),
    33: Lesson("claude-ai-mcp#1027", "a client that does not retry a state alone is always sent the questions",
               reason="it is a rule of the MCP server's answers, and the tests of `skillrun mcp` hold it; no store or loop sees it"),
}  # fmt: skip
