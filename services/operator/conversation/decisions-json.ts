import type { Decisions } from './decisions.ts';

/** As the API writes names. */
export function decisionsJson(decisions: Decisions): object {
  const { outcome, error, policies, resolutions, steps, tools, questions, clarifications, reply } = decisions;
  return {
    ...{ outcome, error, policies, resolutions, steps },
    tools: tools.map(({ toolId, arguments: given, hasFailed }) => ({ tool_id: toolId, arguments: given, failed: hasFailed })),
    questions: questions.map(({ toolId, parameter }) => ({ tool_id: toolId, parameter })),
    ...{ clarifications, reply },
  };
}
