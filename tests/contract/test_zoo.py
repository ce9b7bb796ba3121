"""Zoo files live in a namespace of their own."""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import pytest

from elasticdl.contract.zoo import Zoo
from elasticdl.errors import InvalidValue, NotFound, UnknownName

from .conftest import WriteZoo


def value(zoo: Path, name: str) -> object:
    return Zoo(zoo).find(name).value


def test_a_dotted_name_is_an_attribute_of_a_file(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"a/b.py": "x = 1", "top.py": "class T:\n    y = 2", "p/__init__.py": "z = 3"})
    assert value(zoo, "a.b.x") == 1
    assert value(zoo, "top.T.y") == 2
    assert value(zoo, "p.z") == 3


def test_a_dotted_name_may_end_at_a_module(write_zoo: WriteZoo) -> None:
    named = Zoo(write_zoo({"a/b.py": "x = 1"})).find("a.b")
    assert named.attribute is None
    assert named.module.x == 1


def test_a_name_is_found_in_the_files_of_a_directory(write_zoo: WriteZoo) -> None:
    zoo = write_zoo(
        {"fintech/models.py": "class My: pass", "fintech/data.py": "def process(): pass"}
    )
    assert value(zoo, "fintech.My").__name__ == "My"
    assert value(zoo, "fintech.process").__name__ == "process"


def test_a_name_in_several_files_of_a_directory_is_refused(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"d/a.py": "x = 1", "d/b.py": "x = 2"})
    with pytest.raises(UnknownName, match=r"give 'd\.a\.x' or 'd\.b\.x'"):
        value(zoo, "d.x")


def test_two_zoos_with_a_file_of_the_same_name_do_not_collide(write_zoo: WriteZoo) -> None:
    one = write_zoo({"m.py": "import helper\nx = helper.x", "helper.py": "x = 1"}, "one")
    two = write_zoo({"m.py": "import helper\nx = helper.x", "helper.py": "x = 2"}, "two")
    assert (value(one, "m.x"), value(two, "m.x")) == (1, 2)
    assert "helper" not in sys.modules


def test_the_path_is_left_alone(write_zoo: WriteZoo) -> None:
    before = list(sys.path)
    value(write_zoo({"m.py": "import helper\nx = 1", "helper.py": ""}), "m.x")
    assert sys.path == before


def test_a_file_named_like_an_installed_package_imports_that_package(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"json.py": "import json\nx = json.dumps([1])"})
    assert value(zoo, "json.x") == "[1]"
    import json

    assert not hasattr(json, "x")


def test_a_zoo_file_wins_over_an_installed_package_for_its_neighbours(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"json.py": "x = 'mine'", "m.py": "from json import x"})
    assert value(zoo, "m.x") == "mine"


def test_a_plain_directory_loses_against_an_installed_package(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"json/other.py": "", "m.py": "import json\nx = json.loads('3')"})
    assert value(zoo, "m.x") == 3


@pytest.mark.parametrize(
    "statement",
    [
        "import fintech.data\nx = fintech.data.x",
        "import fintech.data as d\nx = d.x",
        "from fintech.data import x",
        "from fintech import data\nx = data.x",
        "from fintech.data import *",
    ],
)
@pytest.mark.parametrize("package", [{}, {"fintech/__init__.py": ""}])
def test_absolute_imports_find_the_zoo(
    write_zoo: WriteZoo, statement: str, package: dict[str, str]
) -> None:
    zoo = write_zoo({"m.py": statement, "fintech/data.py": "x = 5", **package})
    assert value(zoo, "m.x") == 5


def test_relative_imports_work(write_zoo: WriteZoo) -> None:
    files = {"p/m.py": "from . import n\nfrom .n import x\nfrom ..top import y", "p/n.py": "x = 5"}
    zoo = write_zoo({**files, "top.py": "y = 6"})
    assert (value(zoo, "p.m.x"), value(zoo, "p.m.y")) == (5, 6)


def test_a_package_imports_its_own_modules_by_name(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"p/__init__.py": "from p.n import x", "p/n.py": "x = 5"})
    assert value(zoo, "p.x") == 5


def test_an_import_inside_a_function_works_later(write_zoo: WriteZoo) -> None:
    zoo = Zoo(
        write_zoo({"m.py": "def f():\n    import late\n    return late.x", "late.py": "x = 8"})
    )
    function = zoo.find("m.f").value
    assert zoo.files == ["m.py"]
    assert function() == 8
    assert zoo.files == ["m.py", "late.py"]


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nA = importlib.import_module('helper').A",
        "from importlib import import_module\nA = import_module('helper').A",
        "import importlib.util\nA = importlib.import_module('helper').A",
        "import importlib as lib\nA = lib.import_module('shop.part').helper.A",
        "import importlib\nA = importlib.import_module('.helper', package=__package__).A",
        "import importlib\nA = importlib.import_module('.part', 'shop').helper.A",
    ],
)
def test_import_module_finds_the_zoo_as_import_does(write_zoo: WriteZoo, code: str) -> None:
    zoo = write_zoo(
        {
            "a.py": code,
            "helper.py": "A = 3\n",
            "shop/__init__.py": "",
            "shop/part.py": "import importlib\nhelper = importlib.import_module('helper')\n",
        }
    )
    assert value(zoo, "a.A") == 3
    assert "helper" not in sys.modules


def test_import_module_of_what_is_installed_is_python_s_own(write_zoo: WriteZoo) -> None:
    code = """
        import importlib, importlib.metadata as metadata
        from importlib.util import find_spec
        json = importlib.import_module("json")
        path = importlib.import_module("os.path")
        reload, version = importlib.reload, metadata.version
        try:
            importlib.import_module("nowhere.at_all")
        except ModuleNotFoundError as error:
            missing = error.name
    """
    module = Zoo(write_zoo({"a.py": code})).find("a.json").module
    assert (module.json, module.path) == (json, os.path)
    assert module.missing == "nowhere"
    assert module.reload is importlib.reload


def test_each_reading_runs_the_files_afresh(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "x = []"})
    assert value(zoo, "m.x") is not value(zoo, "m.x")
    write_zoo({"m.py": "x = {}"})
    assert value(zoo, "m.x") == {}


def test_code_carries_its_real_file_name(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "def f(): pass"})
    assert value(zoo, "m.f").__code__.co_filename == str(zoo / "m.py")


def test_an_elasticdl_directory_in_the_zoo_hides_nothing(write_zoo: WriteZoo) -> None:
    text = "from elasticdl.contract.mode import Mode as x"
    from elasticdl.contract.mode import Mode

    assert value(write_zoo({"elasticdl/__init__.py": "", "m.py": text}), "m.x") is Mode


def test_a_missing_neighbour_is_named_as_the_user_wrote_it(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"m.py": "import p.nothing", "p/__init__.py": ""})
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'p\.nothing'$"):
        value(zoo, "m.x")


def test_a_missing_file_is_told_with_the_nearest(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"mnist/model.py": ""})
    with pytest.raises(NotFound, match=r"no .*mnist/modle\.py\. Did you mean 'mnist\.model'"):
        value(zoo, "mnist.modle.custom_model")


def test_a_missing_attribute_is_told_with_the_nearest(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"mnist.py": "def custom_model(): pass"})
    with pytest.raises(UnknownName, match=r"mnist\.py.*Did you mean 'custom_model'"):
        value(zoo, "mnist.custom_modle")


def test_a_missing_zoo_is_told_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"looked at .*nowhere"):
        Zoo(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["mnist/model.py", "model.py", "a..b", ""])
def test_a_path_in_place_of_a_name_is_refused(write_zoo: WriteZoo, name: str) -> None:
    with pytest.raises(InvalidValue, match="dotted name"):
        value(write_zoo({"model.py": ""}), name)


def test_an_error_at_import_keeps_its_own_traceback(write_zoo: WriteZoo) -> None:
    from elasticdl.contract.load import load_spec

    zoo = write_zoo({"m.py": "import helper\n", "helper.py": "\n1 / 0"})
    with pytest.raises(ZeroDivisionError) as raised:
        load_spec("m.model", model_zoo=zoo)
    frames = [(Path(f.filename).name, f.lineno) for f in traceback.extract_tb(raised.tb)]
    assert frames[-2:] == [("m.py", 1), ("helper.py", 2)]
    assert [name for name, _ in frames[:-2]] == ["test_zoo.py"]


def test_a_syntax_error_names_the_users_line(write_zoo: WriteZoo) -> None:
    from elasticdl.contract.load import load_spec

    zoo = write_zoo({"m.py": "x = 1\ndef broken(:\n"})
    with pytest.raises(SyntaxError) as raised:
        load_spec("m.model", model_zoo=zoo)
    assert (raised.value.filename, raised.value.lineno) == (str(zoo / "m.py"), 2)
    assert not any("importlib" in f.filename for f in traceback.extract_tb(raised.tb))
