from dispatcher.failure_rest import Rest, RestRules, after_failure, after_success

RULES = RestRules(failures=3, rest_s=30.0)


def failed(rest: Rest, times: int, now: float = 100.0) -> Rest:
    for _ in range(times):
        rest = after_failure(rest, RULES, now)
    return rest


def test_some_failures_in_a_row_begin_a_rest():
    assert failed(Rest(), 2).until < 0
    assert failed(Rest(), 3).until == 130.0


def test_after_a_rest_one_more_failure_is_another():
    assert failed(failed(Rest(), 3), 1, now=131.0).until == 161.0


def test_a_success_starts_the_count_anew():
    assert failed(after_success(failed(Rest(), 2)), 2).until < 0
    assert failed(after_success(failed(Rest(), 3)), 2, now=131.0).until == 130.0
