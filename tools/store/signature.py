"""Prints the signature that Amazon's own library gives a presigned URL: `signature.py URL KEY_ID SECRET TOKEN`.

The time, the region and the duration are those of the URL.
"""

import sys
from urllib.parse import parse_qs, urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

url, key_id, secret, token = sys.argv[1:]
query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
region = query["X-Amz-Credential"].split("/")[2]
credentials = Credentials(key_id, secret, token or None)
signer = S3SigV4QueryAuth(credentials, "s3", region, expires=int(query["X-Amz-Expires"]))
request = AWSRequest("GET", url.split("?")[0])
request.context["timestamp"] = query["X-Amz-Date"]
signer._modify_request_before_signing(request)
text = signer.string_to_sign(request, signer.canonical_request(request))
print(signer.signature(text, request))
