"""Another number of workers, as a change of a RayCluster. Facts in, a JSON patch out; nobody is asked."""

from __future__ import annotations

from typing import Any

from elasticdl.errors import UnknownName, nearest

__all__ = ["change_of_group"]

Object = dict[str, Any]


def change_of_group(
    ray_cluster: Object, job: str, group: str, minimum: int, maximum: int
) -> list[Object]:
    """The JSON patch that sets how many workers a group may have.

    Where there is no autoscaler nobody chooses between the two numbers: there are as many as may be.

    Raises:
      UnknownName: the job has no such group.
    """
    groups = ray_cluster["spec"].get("workerGroupSpecs", [])
    names = [each["groupName"] for each in groups]
    if group not in names:
        raise UnknownName(f"Unknown group {group!r} of the job {job!r}. {nearest(group, names)}")
    at = f"/spec/workerGroupSpecs/{names.index(group)}"
    replicas = maximum
    if ray_cluster["spec"].get("enableInTreeAutoscaling"):
        now = groups[names.index(group)].get("replicas", minimum)
        replicas = min(max(now, minimum), maximum)
    values = {"minReplicas": minimum, "maxReplicas": maximum, "replicas": replicas}
    steps: list[Object] = [{"op": "test", "path": f"{at}/groupName", "value": group}]
    return steps + [{"op": "add", "path": f"{at}/{key}", "value": values[key]} for key in values]
