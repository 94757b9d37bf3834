"""Which packages a format needs, and what a session is given when they, or their jars, are there already."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from harken.errors import HarkenError
from harken.pipeline.connectors import connector_config, connector_jars, driver_for, packages_for
from harken.pipeline.jars import jar_folder, spark_jars

KAFKA = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
POSTGRESQL = packages_for(["jdbc:postgresql"])[0]
KAFKA_JAR = f"spark-sql-kafka-0-10_2.13-{pyspark.__version__}.jar"
TAGS_JAR = next(spark_jars().glob("spark-tags_2.13-*.jar")).name


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of our own that holds what Kafka needs, and no tool to fetch more; no settings from elsewhere."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = jar_folder([KAFKA])
    folder.mkdir(parents=True)
    for name in (KAFKA_JAR, "kafka-clients-3.9.2.jar", TAGS_JAR):
        (folder / name).touch()
    return folder


def write_defaults(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "spark-defaults.conf").write_text(text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))


def test_packages_are_those_of_this_spark() -> None:
    assert packages_for(["kafka"]) == [KAFKA]
    assert packages_for(["jdbc:postgresql://somewhere:5432/events?ssl=true"]) == [POSTGRESQL]
    assert packages_for(["kafka", "json", "jdbc:postgresql", "kafka", "parquet"]) == [KAFKA, POSTGRESQL]


def test_packages_are_those_of_the_scala_that_spark_was_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "scala-library-2.12.18.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    assert packages_for(["kafka"]) == [KAFKA.replace("_2.13:", "_2.12:")]


@pytest.mark.parametrize(
    "name", ["json", "csv", "parquet", "console", "rate", "socket", "jdbc", "jdbc:h2:mem", "kafka2"]
)
def test_what_is_built_in_or_unknown_needs_no_package(name: str) -> None:
    assert packages_for([name]) == []
    assert connector_config([name]) == {}


def test_a_driver_is_known_by_the_address() -> None:
    assert driver_for("jdbc:postgresql://somewhere/events") == "org.postgresql.Driver"
    assert driver_for("jdbc:h2:mem") is None


def test_jars_are_handed_over_but_for_those_that_spark_has(cache: Path) -> None:
    jars = [cache / "kafka-clients-3.9.2.jar", cache / KAFKA_JAR]
    assert connector_jars([KAFKA]) == jars
    assert connector_config(["kafka", "json"]) == {"spark.jars": f"{jars[0]},{jars[1]}"}


def test_what_cannot_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")  # where there is no Ivy either
    with pytest.raises(HarkenError, match="no mvn on the PATH") as caught:
        connector_config(["kafka", "jdbc:postgresql"])
    assert f"{POSTGRESQL}" in caught.value.message
    assert "spark.jars" in str(caught.value.hint)


def test_the_users_own_settings_are_kept(cache: Path) -> None:
    given = {"spark.jars": "/mine/a.jar, /mine/b.jar", "spark.jars.packages": "a:b:1", "spark.app.name": "mine"}
    jars = f"/mine/a.jar,/mine/b.jar,{cache / 'kafka-clients-3.9.2.jar'},{cache / KAFKA_JAR}"
    assert connector_config(["kafka"], given) == {"spark.jars": jars}


@pytest.mark.parametrize(
    "given",
    [
        {"spark.jars": f"/mine/a.jar,hdfs://somewhere/jars/{KAFKA_JAR}"},
        {"spark.jars": "/mine/spark-sql-kafka-0-10_2.13-4.2.0-preview5.jar"},
        {"spark.jars.packages": "a:b:1, org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"},
    ],
    ids=["jar", "another version", "package"],
)
def test_a_connector_that_the_user_names_is_taken(given: dict[str, str]) -> None:
    assert connector_config(["kafka"], given) == {}


def test_another_artifact_is_not_taken_for_the_connector() -> None:
    given = {"spark.jars": "/mine/spark-sql-kafka-0-10_2.13-extras-1.0.jar"}
    assert KAFKA_JAR in connector_config(["kafka"], given)["spark.jars"]


def test_a_connector_among_sparks_jars_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "postgresql-42.7.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert connector_config(["jdbc:postgresql"]) == {}


def test_settings_for_ivy_leave_the_packages_to_spark() -> None:
    given = {"spark.jars.ivySettings": "/mine/ivysettings.xml", "spark.jars.packages": "a:b:1"}
    assert connector_config(["kafka", "jdbc:postgresql"], given) == {
        "spark.jars.packages": f"a:b:1,{KAFKA},{POSTGRESQL}"
    }


@pytest.mark.parametrize("separator", [" ", "\t", "=", " = ", ":"])
def test_spark_defaults_count_as_settings(separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"# what the administrator gave\n\nspark.app.name\n  spark.jars{separator}/theirs/{KAFKA_JAR}\n"
    write_defaults(tmp_path, text, monkeypatch)
    assert connector_config(["kafka"]) == {}
    # A setting of the session hides theirs.
    assert KAFKA_JAR in connector_config(["kafka"], {"spark.jars": "/mine/a.jar"})["spark.jars"]


@pytest.mark.parametrize("name", ["PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"])
def test_a_spark_that_was_started_elsewhere_has_its_jars(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "somewhere")
    assert connector_config(["kafka", "jdbc:postgresql"]) == {}


def test_a_remote_session_is_given_no_jars() -> None:
    assert connector_config(["kafka"], {"spark.remote": "sc://somewhere"}) == {}
