"""What a Pulsar broker's schema registry answers, for each release, including its bugs.

put              an upload, or a producer that registers its schema
test             the compatibility endpoint
check_consumer   a consumer that brings a schema to a topic that has one
find_version     the number of a version with the same bytes
unreadable_version  the version that no upload can follow
admit            a client that connects: whether it is let in, and what is registered
"""
