from dispatcher.sdk.known_routes import KnownRoutes, Route, Wish

QUERY, CANCEL, THIRD = (Wish(capability=name) for name in ("order.query", "order.cancel", "third"))
ROUTE = Route(capability="order.query", caller="alice")


def test_a_route_is_known_for_its_wish_and_for_a_time():
    known = KnownRoutes(2)
    known.wish(QUERY)
    known.put(QUERY, ROUTE, now=100)

    assert known.find(QUERY, 60, now=159) == ROUTE
    assert known.find(QUERY, 60, now=160) is None
    assert known.find(CANCEL, 60, now=100) is None


def test_environments_are_wishes_of_their_own():
    known = KnownRoutes(2)
    known.wish(QUERY)
    known.put(QUERY, ROUTE, now=100)

    assert known.find(Wish(capability="order.query", environment="staging"), 60, now=100) is None


def test_the_least_lately_wished_for_is_forgotten_first():
    known = KnownRoutes(2)
    told = [known.wish(wish) for wish in (QUERY, CANCEL, QUERY, THIRD)]
    known.put(QUERY, ROUTE, now=0)
    known.put(CANCEL, ROUTE, now=0)

    assert told == [True, True, False, True]
    assert (known.find(QUERY, 60, now=0), known.find(CANCEL, 60, now=0)) == (ROUTE, None)
    assert known.wish(CANCEL)


def test_what_is_missing_or_old_is_to_be_asked_for():
    known = KnownRoutes(3)
    for wish in (QUERY, CANCEL, THIRD):
        known.wish(wish)
    known.put(QUERY, ROUTE, now=100)
    known.put(CANCEL, ROUTE, now=50)

    assert known.older_than(60, now=110) == [CANCEL, THIRD]


def test_what_the_gateway_denies_is_dropped_and_asked_for_again():
    known = KnownRoutes(2)
    known.wish(QUERY)
    known.put(QUERY, ROUTE, now=100)
    known.drop(QUERY)
    known.drop(CANCEL)

    assert known.find(QUERY, 60, now=100) is None
    assert known.older_than(60, now=100) == [QUERY]
