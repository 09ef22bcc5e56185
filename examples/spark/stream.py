"""Append the new messages of a topic since the last run to a Delta table, each exactly once; rejected messages go to another table.

    spark-submit stream.py lake/orders pulsar-schemactl service.url=pulsar://localhost:6650 topic=shop/sales/orders
    spark-submit stream.py lake/orders parquet path=archive/orders

Killed at any moment and started again, it goes on where it was. Without the trigger it does not end.
"""

import sys

from pyspark.sql import SparkSession
from shop_schemas.shop.sales.orders import ORDERS

from schemactl.spark import PulsarSource

table, source, *options = sys.argv[1:]
spark = SparkSession.builder.appName("orders").getOrCreate()
spark.conf.set("spark.sql.streaming.schemaInference", "true")
spark.dataSource.register(PulsarSource)
messages = spark.readStream.format(source).options(**dict(option.split("=", 1) for option in options)).load()
landing = messages.writeStream.foreachBatch(ORDERS.sink(table, format="delta", evolve="add"))
landing = landing.option("checkpointLocation", f"{table}/_checkpoints/orders")
landing.trigger(availableNow=True).start().awaitTermination()
