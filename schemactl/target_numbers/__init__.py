"""The meaning of a target's version numbers where they are not Git's.

The two differ if something other than `apply` took a number: somebody's upload, or a deletion. The target's numbers file, read
from the approved ref, records the difference, and other drift that is accepted. Whatever reads messages of a target uses
`target_versions`, never Git's numbers alone.
"""

from schemactl.target_numbers.acceptance import Acceptance as Acceptance
from schemactl.target_numbers.acceptance import AcceptanceReason as AcceptanceReason
from schemactl.target_numbers.acceptance import joined as joined
from schemactl.target_numbers.apart import NumberApart as NumberApart
from schemactl.target_numbers.apart import TopicApart as TopicApart
from schemactl.target_numbers.apart import apart_values as apart_values
from schemactl.target_numbers.apart import find_apart as find_apart
from schemactl.target_numbers.apart import lost_numbers as lost_numbers
from schemactl.target_numbers.apart import other_spellings as other_spellings
from schemactl.target_numbers.apart import read_apart as read_apart
from schemactl.target_numbers.apart import topic_apart as topic_apart
from schemactl.target_numbers.file import numbers_of as numbers_of
from schemactl.target_numbers.file import numbers_path as numbers_path
from schemactl.target_numbers.file import read_numbers as read_numbers
from schemactl.target_numbers.file import recorded_elsewhere as recorded_elsewhere
from schemactl.target_numbers.judging import JudgedNumbers as JudgedNumbers
from schemactl.target_numbers.judging import judge_files as judge_files
from schemactl.target_numbers.mapping import NumberEntry as NumberEntry
from schemactl.target_numbers.mapping import TargetNumbers as TargetNumbers
from schemactl.target_numbers.mapping import TargetVersion as TargetVersion
from schemactl.target_numbers.mapping import TopicNumbers as TopicNumbers
from schemactl.target_numbers.mapping import records_other_numbers as records_other_numbers
from schemactl.target_numbers.mapping import target_number as target_number
from schemactl.target_numbers.mapping import target_versions as target_versions
from schemactl.target_numbers.on_target import expect_agreement as expect_agreement
from schemactl.target_numbers.on_target import numbered as numbered
from schemactl.target_numbers.writing import accept as accept
