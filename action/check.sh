#!/usr/bin/env bash
# What the action does: refuse where a stranger's files meet somebody's secrets, find the base, check, say what changed.
set -euo pipefail

stop() {
    printf '::error title=skillrun::%s\n' "$1"
    exit 2
}

cd "$GITHUB_WORKSPACE"
here=$(git rev-parse --verify HEAD 2>/dev/null) || stop "there is no checkout: use actions/checkout with fetch-depth: 0 before this action"

# These events run with the repository's secrets and a token that can write. The files of a pull request have no
# business there (https://securitylab.github.com/resources/github-actions-preventing-pwn-requests/).
case "${GITHUB_EVENT_NAME:-}" in
pull_request_target | workflow_run | issue_comment)
    [ "$here" = "${GITHUB_SHA:-}" ] ||
        stop "$GITHUB_EVENT_NAME with a checkout of somebody else's files is refused: use the event pull_request"
    ;;
esac

base=
if [ -n "${BASE_SHA:-}" ]; then
    # The base's own copy of ceiling, lock, baseline and ignores is what counts.
    base=$(git merge-base "$BASE_SHA" HEAD 2>/dev/null) ||
        stop "the commit this change starts from is not here: use actions/checkout with fetch-depth: 0"
elif [ "${GITHUB_EVENT_NAME:-}" = pull_request ] || [ "${GITHUB_EVENT_NAME:-}" = merge_group ]; then
    stop "the event does not say what the change is compared with"
fi

if [ -z "${SKILLRUN:-}" ]; then
    # Into a folder of the runner's, from the action's own checkout: nothing of the workspace is imported.
    tools="${RUNNER_TEMP:?}/skillrun"
    (cd "$RUNNER_TEMP" && "${INPUT_PYTHON:-python3}" -I -m venv "$tools" &&
        "$tools/bin/python" -I -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH")
    SKILLRUN="$tools/bin/skillrun"
fi

ceiling=(--ceiling "${INPUT_CEILING:-default}")
options=("${ceiling[@]}" --fail-on "${INPUT_FAIL_ON:-warning}")
[ -z "$base" ] || options+=(--policy-from "$base")
[ "${INPUT_LOCKED:-true}" != true ] || options+=(--locked)
roots=()
named=()
while IFS= read -r root; do
    [ -z "$root" ] || { roots+=("$root") && named+=(--skills "$root"); }
done <<<"${INPUT_ROOTS:-}"

if [ -n "$base" ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    "$SKILLRUN" diff "$base" "${ceiling[@]}" "${named[@]}" --format markdown >>"$GITHUB_STEP_SUMMARY" || [ $? -eq 1 ] ||
        printf '\nskillrun could not compare the permissions; its message is in the log of this step.\n' >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${INPUT_SARIF_FILE:-}" ]; then
    "$SKILLRUN" check "${options[@]}" --format sarif -- "${roots[@]}" >"$INPUT_SARIF_FILE" || true
fi
exec "$SKILLRUN" check "${options[@]}" --format github -- "${roots[@]}"
