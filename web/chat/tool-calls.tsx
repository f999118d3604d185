import type { ToolCall } from './entries.ts';

/** A batch of calls, each folded. */
export function ToolCalls({ calls }: { calls: readonly ToolCall[] }) {
  return (
    <>
      {calls.map(({ toolId, given, result }, at) => (
        <details key={at}>
          <summary>
            Tool <code>{toolId}</code>
          </summary>
          <h2>Arguments</h2>
          <pre>{given}</pre>
          <h2>Result</h2>
          <pre>{result}</pre>
        </details>
      ))}
    </>
  );
}
