"""The Python SDK as a client: lists the tools, writes a file, reads it back.

    python sdk.py ERA stdio COMMAND ARGUMENT...
    python sdk.py ERA http URL TOKEN

ERA is "legacy" (the handshake of the protocol's older revisions) or "auto" (the
newest revision). Prints what came back as JSON.
"""

import json
import sys

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def connect(kind: str, target: str, *rest: str):
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=target, args=list(rest)))
    headers = {"Authorization": f"Bearer {rest[0]}"}
    return streamable_http_client(target, http_client=create_mcp_http_client(headers=headers))


async def main(era: str, *where: str) -> None:
    async with Client(connect(*where), mode=era) as client:

        async def call(name: str, arguments: dict) -> dict:
            result = await client.call_tool(name, arguments)
            texts = [block.text for block in result.content]
            return {"isError": bool(result.is_error), "texts": texts}

        listed = await client.list_tools()
        wrote = await call("workspace_write", {"path": "from/client.txt", "content": "héllo\n"})
        read = await call("workspace_read", {"path": "from/client.txt"})
        refused = await call("workspace_read", {"path": "../secure/config.yaml"})
        print(
            json.dumps(
                {
                    "server": client.server_info.name if client.server_info else None,
                    "era": client.protocol_version,
                    "tools": [tool.name for tool in listed.tools],
                    "wrote": wrote,
                    "read": read,
                    "refused": refused,
                }
            )
        )


anyio.run(main, *sys.argv[1:])
