// OpenPact's plugin for OpenCode: says which conversation a tool call belongs to.
//
// An MCP request carries no identity of its own, so the session and the call
// are added to the arguments as `_caller`. The MCP server takes it off again
// before it looks at the arguments, and believes it only on the engine's own
// token. Whatever the model wrote in its place is replaced.

// OpenCode calls our tools `<server>_<tool>`, and the server is named `openpact`.
const PREFIX = "openpact_"

// OpenCode takes every export for a plugin, so this is the only one.
export const OpenPact = async () => ({
  "tool.execute.before": async (input, output) => {
    // What is thrown here would fail the model's call with words that say
    // nothing to it. A call that stays unstamped is an anonymous client's call.
    try {
      if (typeof input?.tool !== "string" || !input.tool.startsWith(PREFIX)) return
      // OpenCode goes on with the object it handed in, so that one is changed;
      // defining the property can't be caught by a setter or a prototype.
      Object.defineProperty(output.args, "_caller", {
        value: { session: input.sessionID, call: input.callID },
        configurable: true,
        enumerable: true,
        writable: true,
      })
    } catch {
      // Arguments that aren't an object: there's nowhere to put a stamp, and
      // none that the model could have forged.
    }
  },
})
