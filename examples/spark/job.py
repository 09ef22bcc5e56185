"""Land a topic in a Delta table; messages that cannot be read are in TABLE_rejected, each with its reason and its bytes.

    spark-submit job.py lake/orders pulsar-schemactl service.url=pulsar://localhost:6650 topic=shop/sales/orders
    spark-submit job.py lake/orders parquet path=archive/orders

The tables get the current messages of the topic or the archive, and lose their earlier rows. stream.py appends instead.
"""

import sys

from pyspark.sql import SparkSession
from shop_schemas.shop.sales.orders import ORDERS

from schemactl.spark import PulsarSource

table, source, *options = sys.argv[1:]
spark = SparkSession.builder.appName("orders").getOrCreate()
spark.dataSource.register(PulsarSource)
messages = spark.read.format(source).options(**dict(option.split("=", 1) for option in options)).load()
landed = ORDERS.land(messages, table, format="delta", mode="overwrite")
print(f"{landed.rows:,} rows in {table}, {landed.rejected:,} messages in {table}_rejected")
