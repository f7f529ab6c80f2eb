"""What the age of a heartbeat says about an instance."""

from dispatcher.registry.agent import Liveness, LivenessRules


def liveness(age_s: float, rules: LivenessRules) -> Liveness:
    """ALIVE until `suspect_after_s`, then SUSPECT, and OFFLINE from `offline_after_s` on."""
    if age_s >= rules.offline_after_s:
        return Liveness.OFFLINE
    return Liveness.SUSPECT if age_s >= rules.suspect_after_s else Liveness.ALIVE


def is_live(age_s: float, rules: LivenessRules) -> bool:
    """Whether an instance of that age still counts: not OFFLINE."""
    return liveness(age_s, rules) is not Liveness.OFFLINE
