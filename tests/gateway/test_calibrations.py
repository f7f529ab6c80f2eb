from dataclasses import replace

import orjson
import pytest

from dispatcher import records
from dispatcher.dispatch.lifecycle.request import DecisionRecord
from dispatcher.gateway.calibration_models import CalibrationDetailReply, CalibrationsReply
from dispatcher.gateway.models import DecisionReply, ShadowReply
from dispatcher.gateway.view import records_view
from dispatcher.identifiers import RequestId
from dispatcher.routing.decision import Outcome, ShadowDecision
from dispatcher.routing.record import decision_document
from dispatcher.routing.stored_calibration import State
from tests.gateway.stubs import ADMIN, ALICE, IDENTITIES, ORDER, SECRET, decision
from tests.routing.stored import UNREADABLE


def test_calibrations_are_listed_without_their_documents(api):
    response = api.call("GET", "/v1/calibrations", key=ADMIN)

    reply = CalibrationsReply.model_validate_json(response.content)
    assert [(one.number, one.origin, one.state) for one in reply.calibrations] == [
        (3, "labelled", "proposed"),
        (2, "labelled", "proposed"),
        (1, "self", "in_force"),
    ]
    assert "document" not in response.json()["calibrations"][0]


def test_one_of_a_later_version_is_listed_without_its_figures(api):
    api.calibrations.unreadable = {9: replace(UNREADABLE, number=9)}

    response = api.call("GET", "/v1/calibrations", key=ADMIN)

    first = CalibrationsReply.model_validate_json(response.content).calibrations[0]
    assert (first.number, first.state, first.registry_version, first.scope_floor) == (
        9,
        "proposed",
        None,
        None,
    )
    assert len(response.json()["calibrations"]) == 4


def test_one_comes_with_its_report_and_all_of_it(api):
    reply = CalibrationDetailReply.model_validate_json(
        api.call("GET", "/v1/calibrations/2", key=ADMIN).content
    )

    assert (reply.number, reply.scope_floor, reply.made_by) == (2, 0.2, "root")
    assert reply.report == {"rows": {"inside": 40}}
    assert reply.document is not None
    assert reply.document["floors"] == {"order.query": 0.3}


@pytest.mark.parametrize("state", ["in_force", "shadow", "retired"])
def test_an_administrator_changes_its_state(api, state):
    response = api.call("POST", "/v1/calibrations/2/state", key=ADMIN, json={"state": state})

    reply = CalibrationDetailReply.model_validate_json(response.content)
    assert (response.status_code, reply.state, reply.changed_by) == (200, state, "root")
    assert api.calibrations.changed == [(2, State(state), "root")]


def test_one_of_a_later_version_can_be_retired_and_nothing_else(api):
    api.calibrations.unreadable = {9: replace(UNREADABLE, number=9)}
    path = "/v1/calibrations/9"

    shown = api.call("GET", path, key=ADMIN)
    used = api.call("POST", f"{path}/state", key=ADMIN, json={"state": "shadow"})
    retired = api.call("POST", f"{path}/state", key=ADMIN, json={"state": "retired"})

    assert [(one.status_code, one.json()["code"]) for one in (shown, used)] == [(409, "not_readable")] * 2
    reply = CalibrationDetailReply.model_validate_json(retired.content)
    assert (reply.state, reply.changed_by, reply.document) == ("retired", "root", None)


@pytest.mark.parametrize("body", [{}, {"state": "proposed"}, {"state": "used"}, {"state": 1}, {"number": 2}])
def test_what_is_no_state_to_be_put_into_is_refused(api, body):
    response = api.call("POST", "/v1/calibrations/2/state", key=ADMIN, json=body)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")
    assert api.calibrations.changed == []


def test_one_of_another_encoder_is_a_conflict(api):
    response = api.call("POST", "/v1/calibrations/3/state", key=ADMIN, json={"state": "in_force"})

    assert (response.status_code, response.json()["code"]) == (409, "other_encoder")


@pytest.mark.parametrize(("capability", "is_shown"), [(ORDER, True), (SECRET, False)])
def test_what_a_calibration_in_shadow_says_of_a_capability_is_for_those_who_may_use_it(capability, is_shown):
    shadow = ShadowDecision(number=2, outcome=Outcome.SELECTED, similarity=0.9, scope_floor=0.2)
    document = decision_document(records.replace(decision(capability), shadow=shadow))
    stored = DecisionRecord(request_id=RequestId("r1"), position=0, number=1, document=document)

    (view,) = records_view([stored], IDENTITIES[ALICE])

    assert DecisionReply.model_validate_json(orjson.dumps(view)).shadow == (
        ShadowReply(number=2, outcome="selected", similarity=0.9, scope_floor=0.2) if is_shown else None
    )


@pytest.mark.parametrize("number", ["4", "0", "-1", "two", "1.0", "²", "9" * 30])
def test_there_has_to_be_one_of_the_number(api, number):
    shown = api.call("GET", f"/v1/calibrations/{number}", key=ADMIN)
    changed = api.call("POST", f"/v1/calibrations/{number}/state", key=ADMIN, json={"state": "shadow"})

    assert [(one.status_code, one.json()["code"]) for one in (shown, changed)] == [(404, "not_found")] * 2


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/calibrations"),
        ("GET", "/v1/calibrations/1"),
        ("POST", "/v1/calibrations/1/state"),
    ],
)
def test_calibrations_are_for_administrators(api, method, path):
    assert api.call(method, path, key=ALICE).status_code == 403
