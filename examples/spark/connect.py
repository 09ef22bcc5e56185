"""The job over Spark Connect: this process has no JVM, and the workers need nothing of schemactl but the zip that is sent along.

    schemactl generate --zip shop_schemas.zip
    PYTHONPATH=shop_schemas.zip python connect.py sc://spark.example.com shop_schemas.zip s3://lake/archive s3://lake/orders

Workers write the files, and this process commits them: both must reach the table.
"""

import sys

from pyspark.sql import SparkSession
from shop_schemas.shop.sales.orders import ORDERS

server, package, archive, table = sys.argv[1:]
spark = SparkSession.builder.remote(server).getOrCreate()
spark.addArtifacts(package, pyfile=True)
messages = spark.read.parquet(archive)
rows, rejected = ORDERS.split(ORDERS.decode(messages))
rows.groupBy("channel", "status").count().orderBy("channel", "status").show()
landed = ORDERS.land(messages, table, format="delta", mode="overwrite")
print(f"{landed.rows:,} rows in {table}, {landed.rejected:,} messages in {table}_rejected")
spark.stop()
