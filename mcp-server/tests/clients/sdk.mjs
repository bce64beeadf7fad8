// The TypeScript SDK as a client: lists the tools, writes a file, reads it back.
//
//   node sdk.mjs stdio COMMAND ARGUMENT...
//   node sdk.mjs http URL TOKEN
//
// Prints what came back as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

function connect([kind, target, ...rest]) {
  if (kind === "stdio") {
    return new StdioClientTransport({ command: target, args: rest, stderr: "inherit" });
  }
  const headers = { Authorization: `Bearer ${rest[0]}` };
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
}

const client = new Client({ name: "typescript-sdk", version: "1" });
await client.connect(connect(process.argv.slice(2)));
const { tools } = await client.listTools();
const call = async (name, args) => {
  const { content, isError } = await client.callTool({ name, arguments: args });
  return { isError: isError ?? false, texts: content.map((block) => block.text) };
};
const wrote = await call("workspace_write", { path: "from/client.txt", content: "héllo\n" });
const read = await call("workspace_read", { path: "from/client.txt" });
const refused = await call("workspace_read", { path: "../secure/config.yaml" });
const server = client.getServerVersion()?.name;
await client.close();
console.log(JSON.stringify({ server, tools: tools.map((tool) => tool.name), wrote, read, refused }));
