"""`JobConfig`: everything a job was asked for, checked once, frozen, and written to `job.json`.

Its fields are the one table of options: the command line makes its flags of them, the Python API its
keyword arguments, the documentation its pages. Each field says in its metadata what it is for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from elasticdl.errors import InvalidValue, UnknownName, nearest
from elasticdl.job.parse import (
    parse_bool,
    parse_float,
    parse_int,
    parse_params,
    parse_workers,
    workers_text,
)

__all__ = ["COMMANDS", "JobConfig", "Option", "options"]

COMMANDS = ("train", "evaluate", "predict")
DATA_OF = {
    "train": "training_data",
    "evaluate": "validation_data",
    "predict": "prediction_data",
}
STRATEGIES = ("Local", "AllreduceStrategy", "ParameterServerStrategy")


@dataclass(frozen=True)
class Option:
    """What the command line, the API and the documentation say of one field."""

    name: str
    help: str
    group: str
    type: str
    default: Any
    aliases: tuple[str, ...] = ()
    commands: tuple[str, ...] = COMMANDS
    cluster: bool = False
    """Has an effect on a cluster only; accepted, and said to have none, with `Local`."""
    kubernetes: bool = False
    """Has an effect with `--cluster` only."""
    choices: tuple[str, ...] = ()
    minimum: float | None = None


def _option(
    default: Any,
    help: str,
    *,
    group: str,
    type: str = "str",
    **more: Any,
) -> Any:
    return field(default=default, metadata={"help": help, "group": group, "type": type, **more})


def _train(default: Any, help: str, **more: Any) -> Any:
    return _option(default, help, commands=("train",), **more)


def _cluster(help: str, default: Any = None, **more: Any) -> Any:
    return _option(default, help, group="Cluster", cluster=True, **more)


def _kubernetes(help: str, default: Any = None, **more: Any) -> Any:
    return _option(default, help, group="Kubernetes", cluster=True, kubernetes=True, **more)


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """One job. Make it with `JobConfig.parse`, which takes the strings of a command line too."""

    command: str = "train"
    given: frozenset[str] = frozenset()
    """The names of the options that were given, be it with their default value."""

    # --- Model ---
    model_zoo: str | None = _option(
        None,
        "Directory or Git address of the model files. Default: the working directory.",
        group="Model",
    )
    model_def: str | None = _option(
        None,
        "The model: `a.b.name` is attribute `name` of `<model_zoo>/a/b.py`.",
        group="Model",
    )
    model_params: dict[str, Any] = _option(
        None,
        "Parameters for the model: `hidden_units=[10, 20], learning_rate=0.01`.",
        group="Model",
        type="params",
        aliases=("params",),
    )
    dataset_fn: str | None = _option(
        None,
        "Name of the function that turns records into features and labels.",
        group="Model",
        aliases=("feed", "input_fn"),
    )
    loss: str | None = _option(
        None, "Name of the loss.", group="Model", commands=("train", "evaluate")
    )
    optimizer: str | None = _train(None, "Name of the optimizer.", group="Model")
    eval_metrics_fn: str | None = _option(
        None, "Name of the metrics function.", group="Model", commands=("train", "evaluate")
    )
    callbacks: str | None = _option(
        None,
        "Name of the function that returns callbacks.",
        group="Model",
        commands=("train", "evaluate"),
    )
    custom_data_reader: str | None = _option(
        None, "Name of the function that makes a data reader.", group="Model"
    )
    prediction_outputs_processor: str | None = _option(
        None, "Name of the class that receives predictions.", group="Model", commands=("predict",)
    )
    trained_model: str | None = _option(
        None,
        "A trained model: the `--output` of a training, a Keras file or a SavedModel.",
        group="Model",
    )
    trust: bool = _option(
        False,
        "Run the Python code that a Keras file or SavedModel carries.",
        group="Model",
        type="bool",
        commands=("evaluate", "predict"),
    )
    output: str | None = _option(
        None,
        "Directory to write to. Default: a new one below elasticdl_runs/.",
        group="Model",
        commands=("train", "predict"),
    )
    output_format: str | None = _option(
        None,
        "What the files of an output directory are. Default: parquet.",
        group="Model",
        commands=("predict",),
        choices=("parquet", "csv", "jsonl", "recordio", "tfrecord"),
    )
    overwrite: bool = _option(
        False,
        "Replace what an earlier run left in --output.",
        group="Model",
        type="bool",
        commands=("train", "predict"),
    )

    # --- Data ---
    training_data: str | None = _train(
        None,
        "Training data: a file, directory or glob; several with commas.",
        group="Data",
    )
    validation_data: str | None = _option(
        None,
        "Validation data: a file, directory or glob; several with commas.",
        group="Data",
        commands=("train", "evaluate"),
    )
    prediction_data: str | None = _option(
        None,
        "Data to predict: a file, directory or glob; several with commas.",
        group="Data",
        commands=("predict",),
    )
    data_reader_params: dict[str, Any] = _option(
        None,
        "Parameters for the reader: `columns=['a', 'b']; sep=','`.",
        group="Data",
        type="params",
    )
    feature_plan: dict[str, Any] | None = _option(
        None,
        "How the columns of a table become features (`tabular.plan`): what SQL trains with.",
        group="Data",
        commands=(),  # for no command line: it is made of the data
    )
    minibatch_size: int = _option(
        64, "Records in a minibatch.", group="Data", type="int", minimum=1
    )
    global_batch_size: int | None = _train(
        None,
        "Records in a step of all workers together, whatever their number.",
        group="Data",
        type="int",
        minimum=1,
    )
    num_minibatches_per_task: int = _option(
        256, "Minibatches in a task, the unit of work.", group="Data", type="int", minimum=1
    )
    num_epochs: int = _train(
        1, "Passes over the training data.", group="Data", type="int", minimum=1
    )
    shuffle_tasks: bool = _train(
        True, "Take the tasks of an epoch in random order.", group="Data", type="bool"
    )

    # --- Training ---
    seed: int | None = _option(
        None,
        "Makes a run repeatable. Default: a random one, noted in job.json.",
        group="Run",
        type="int",
    )
    max_step: int = _train(
        0, "Stop after this many steps (0: do not).", group="Run", type="int", minimum=0
    )
    debug: bool = _option(
        False, "Run eagerly, so that a debugger stops in your code. Slow.", group="Run", type="bool"
    )
    resume: bool = _option(
        False,
        "Go on from the last checkpoint in --output.",
        group="Run",
        type="bool",
        commands=("train", "predict"),
    )
    job_name: str | None = _option(None, "A name for the job.", group="Run")
    log_level: str = _option(
        "INFO",
        "How much to say: WARNING shows no progress, DEBUG whole tracebacks.",
        group="Run",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    log_loss_steps: int = _train(
        100, "Record the loss every this many steps.", group="Run", type="int", minimum=1
    )

    # --- Evaluation ---
    evaluation_steps: int = _train(
        0,
        "Evaluate every this many steps, beside each epoch's end (0: only there).",
        group="Evaluation",
        type="int",
        minimum=0,
    )
    evaluation_start_delay_secs: float = _train(
        0,
        "Seconds before the first evaluation by steps.",
        group="Evaluation",
        type="float",
        minimum=0,
    )
    evaluation_throttle_secs: float = _train(
        0, "Seconds between two evaluations by steps.", group="Evaluation", type="float", minimum=0
    )
    export_metric: str | None = _train(
        None,
        "Keep the version with the best value of this metric in model/, the last in model_last/.",
        group="Evaluation",
    )
    export_mode: str = _train(
        "auto",
        "Whether more (max) or less (min) of it is better. Default: by its name.",
        group="Evaluation",
        choices=("auto", "max", "min"),
    )
    tensorboard_log_dir: str | None = _train(
        None, "Where TensorBoard logs go. Default: tensorboard/ in --output.", group="Evaluation"
    )

    # --- Checkpoints ---
    checkpoint_steps: int = _train(
        0,
        "Save a checkpoint every this many steps (0: none).",
        group="Checkpoint",
        type="int",
        minimum=0,
    )
    checkpoint_dir: str | None = _train(
        None, "Where checkpoints go. Default: checkpoints/ in --output.", group="Checkpoint"
    )
    keep_checkpoint_max: int = _train(
        3, "How many checkpoints to keep (0: all).", group="Checkpoint", type="int", minimum=0
    )
    checkpoint_dir_for_init: str | None = _option(
        None,
        "Start from the weights of the last checkpoint in this directory.",
        group="Checkpoint",
        commands=("train", "evaluate"),
    )

    # --- Cluster ---
    distribution_strategy: str = _option(
        "Local", "How the job is run.", group="Cluster", choices=STRATEGIES
    )
    num_workers: str | None = _cluster(
        "Number of workers, or the least and the most: `2:4`. Default: 1.", type="workers"
    )
    ray_address: str | None = _cluster(
        "Address of a Ray cluster: `auto`, `ray://host:port` or `host:port`. "
        "Default: a Ray of the job's own."
    )
    worker_timeout: float = _cluster(
        "Seconds after which a worker that does not answer is expelled.",
        30.0,
        type="float",
        minimum=1,
    )
    max_bad_tasks: int = _cluster(
        "Tasks that may be left out because their records cannot be read.",
        0,
        type="int",
        minimum=0,
    )
    num_ps_pods: int | None = _cluster("Number of parameter servers.", type="int")
    grads_to_wait: int | None = _cluster("Gradients to wait for before an update.", type="int")
    use_async: bool | None = _cluster("Update asynchronously.", type="bool")
    lr_staleness_modulation: bool | None = _cluster(
        "Scale the learning rate by staleness.", type="bool"
    )
    get_model_steps: int | None = _cluster("Steps between two pulls of the model.", type="int")
    worker_resource_request: str | None = _cluster(
        "`cpu=1,memory=4096Mi,gpu=1` for each worker. Default on Kubernetes: cpu=1,memory=4096Mi."
    )
    ps_resource_request: str | None = _cluster("`cpu=1,memory=4096Mi` for each parameter server.")
    ps_resource_limit: str | None = _cluster("Limits for each parameter server.")
    ps_pod_priority: str | None = _cluster("Priority of the parameter servers.")
    relaunch_on_worker_failure: str | None = _cluster("How often a lost worker is replaced.")

    # --- Kubernetes ---
    cluster: str | None = _kubernetes(
        "Run there instead of here: `kubernetes`, or `kubernetes:CONTEXT` of the kubeconfig."
    )
    namespace: str | None = _kubernetes("Namespace. Default: the context's.")
    image_name: str | None = _kubernetes("A pre-built image with /model_zoo: nothing is built.")
    docker_image_repository: str | None = _kubernetes("Where the built image is pushed.")
    image_base: str | None = _kubernetes("Base of the built image. Default: Python's own.")
    image_include: str | None = _kubernetes(
        "Files that go into the image though they look like data or secrets: `data/*.csv,...`."
    )
    extra_pypi_index: str | None = _kubernetes("One more package index for the built image.")
    print_dockerfile: bool = _kubernetes(
        "Print what the image would be built of, and do nothing.", False, type="bool"
    )
    docker_base_url: str | None = _kubernetes("Address of the Docker engine.")
    docker_tlscert: str | None = _kubernetes("Client certificate for the Docker engine.")
    docker_tlskey: str | None = _kubernetes("Client key for the Docker engine.")
    image_pull_policy: str | None = _kubernetes(
        "When the image is pulled.", choices=("Always", "IfNotPresent", "Never")
    )
    worker_resource_limit: str | None = _kubernetes(
        "Limits for each worker. Default: as requested."
    )
    worker_pod_priority: str | None = _kubernetes(
        "Priority class of the workers; `high=0.5`: of half of them."
    )
    master_resource_request: str | None = _kubernetes(
        "For the master's pod. Default: cpu=1,memory=4096Mi."
    )
    master_resource_limit: str | None = _kubernetes(
        "Limits for the master's pod. Default: as requested."
    )
    master_pod_priority: str | None = _kubernetes("Priority class of the master's pod.")
    volume: str | None = _kubernetes(
        "`claim_name=c,mount_path=/p` for all pods; several with semicolons; `host_path` is known too."
    )
    envs: str | None = _kubernetes("`k=v,k2=v2`: environment of the pods.")
    spot: bool = _kubernetes(
        "Run workers on spot nodes: with MIN:MAX those above the minimum, else all.",
        False,
        type="bool",
    )
    queue: str | None = _kubernetes("Kueue's LocalQueue to wait in.")
    restart_policy: str | None = _kubernetes(
        "What becomes of a pod that ends. Default: KubeRay's.",
        choices=("Always", "OnFailure", "Never"),
    )
    cluster_spec: str | None = _kubernetes(
        "Python file whose `cluster.with_pod(pod)` may change each pod."
    )
    yaml: str | None = _kubernetes("Write the manifest here and submit nothing.")
    dry_run: bool = _kubernetes(
        "Let the API server check the job, and submit nothing.", False, type="bool"
    )
    detach: bool = _kubernetes(
        "Return when the job is submitted, instead of following it.", False, type="bool"
    )

    @classmethod
    def parse(cls, command: str, values: Mapping[str, Any]) -> JobConfig:
        """Check the values of one command, strings or Python values, by name or alias."""
        known = options(command)
        by_name = {alias: option for option in known for alias in (option.name, *option.aliases)}
        given: dict[str, Any] = {}
        origin: dict[str, str] = {}
        for key, value in values.items():
            if value is None:
                continue
            if key not in by_name:
                raise UnknownName(f"Unknown option {key!r} of {command}. {nearest(key, by_name)}")
            option = by_name[key]
            if option.name in given:
                raise InvalidValue(
                    f"{key!r} and {origin[option.name]!r} are two names of one option. Give one of them."
                )
            given[option.name] = _convert(key, option, value)
            origin[option.name] = key
        for option in known:
            if option.type == "params":
                given.setdefault(option.name, {})
        _take_global_batch(given)
        _refuse_lonely(given)
        return cls(command=command, given=frozenset(origin), **given)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobConfig:
        """The job that `to_json` described."""
        known = {f.name for f in dataclasses.fields(cls)}
        given = {name: value for name, value in values.items() if name in known}
        return cls(**{"model_params": {}, "data_reader_params": {}, **given})

    @property
    def idle_cluster_options(self) -> list[str]:
        """The cluster options that were given though the job runs on no cluster, or on no Kubernetes."""
        if self.cluster is not None:
            return []
        is_local = self.distribution_strategy == "Local"
        return [
            o.name
            for o in options(self.command)
            if ((o.cluster and is_local) or o.kubernetes) and getattr(self, o.name) != o.default
        ]

    @property
    def workers(self) -> tuple[int, int]:
        """The least and the most workers; one when nothing was said."""
        return parse_workers("num_workers", self.num_workers or 1)

    def refuse_parameter_servers(self) -> None:
        """There are none: every worker holds the whole model."""
        if self.distribution_strategy == "ParameterServerStrategy":
            raise InvalidValue(
                "Invalid distribution_strategy 'ParameterServerStrategy': there are no parameter servers. "
                "Use AllreduceStrategy, with the same model files: workers may come and go there too."
            )

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, as plain values."""
        return {
            f.name: value
            for f in dataclasses.fields(self)
            if f.metadata
            and (value := getattr(self, f.name)) != f.default
            and value not in (None, {})
        } | {"command": self.command}


def options(command: str) -> list[Option]:
    """The options of a command, in the order of the table."""
    return [
        Option(name=f.name, default=f.default, **{**f.metadata, **_of_command(command, f.name)})
        for f in dataclasses.fields(JobConfig)
        if f.metadata and command in f.metadata.get("commands", COMMANDS)
    ]


_HELP = {
    (
        "predict",
        "output",
    ): "Where predictions go: a file (.parquet, .csv, .jsonl, .recordio, .tfrecord) "
    "or a directory.",
    (
        "train",
        "trained_model",
    ): "Start from the weights of a trained model: the `--output` of a training.",
    ("predict", "resume"): "Go on with the parts that are in --output.",
}
"""Where an option means something else for a command."""


def _of_command(command: str, name: str) -> dict[str, Any]:
    """`--data` is the data that the command is about."""
    aliases = {"aliases": ("data",)} if name == DATA_OF[command] else {}
    return aliases | ({"help": _HELP[command, name]} if (command, name) in _HELP else {})


def _take_global_batch(given: dict[str, Any]) -> None:
    """All workers together read minibatches of the global size; one alone reads them whole."""
    if "global_batch_size" not in given:
        return
    if "minibatch_size" in given:
        raise InvalidValue(
            f"minibatch_size {given['minibatch_size']} and global_batch_size {given['global_batch_size']} "
            "are both given: the first is of one worker, the second of all together. Give one of them."
        )
    given["minibatch_size"] = given["global_batch_size"]


def _refuse_lonely(given: Mapping[str, Any]) -> None:
    """Who asks for a manifest does not want a training on this machine."""
    lonely = [name for name in ("yaml", "dry_run", "print_dockerfile", "detach") if given.get(name)]
    if lonely and "cluster" not in given:
        raise InvalidValue(
            f"{lonely[0]} is for jobs on Kubernetes, and this one would run here. Add cluster=kubernetes, "
            f"or leave {lonely[0]} out."
        )


def _convert(key: str, option: Option, value: Any) -> Any:
    parse: Callable[[str, Any], Any] = {
        "bool": parse_bool,
        "int": parse_int,
        "float": parse_float,
        "params": parse_params,
        "workers": lambda name, v: workers_text(parse_workers(name, v)),
        "str": lambda _, v: str(v),
    }[option.type]
    result = parse(key, value)
    if option.choices and result not in option.choices:
        raise InvalidValue(
            f"Invalid {key} {value!r}: it is not one of {', '.join(option.choices)}. "
            f"{nearest(str(value), option.choices)}"
        )
    if option.minimum is not None and not result >= option.minimum:  # nor NaN
        raise InvalidValue(
            f"Invalid {key} {value!r}: the smallest that makes sense is {option.minimum:g}."
        )
    return result
