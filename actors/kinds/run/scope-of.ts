import { stepToolsOf } from '../../engine/run-steps.ts';
import { runTools, selectorsOf } from '../../engine/run-tools.ts';
import type { Plan } from '../plan.ts';
import { factsOf, serversOf } from './facts-of.ts';
import type { RunScope } from './run-scope.ts';
import type { RunContext } from './types.ts';

/** The run in progress, for results of its effects. */
export function scopeOf(plan: Plan, { runId, lists, pending }: RunContext): RunScope {
  const facts = factsOf(plan, runId);
  const { routine } = facts;
  /** Undefined: its list does not have it. Null: the list can not be read. */
  const toolIn = (toolId: string, listed: Readonly<Record<string, string>>) => {
    const [server = '', ...name] = toolId.split(':');
    const listHash = listed[server];
    const list = listHash === undefined ? null : plan.inputs.toolsOf(listHash);
    return list === null ? null : list.find((tool) => tool.name === name.join(':'));
  };
  return {
    servers: serversOf(routine),
    tools() {
      const known = Object.entries(lists).map(([server, hash]) => [server, { hash, tools: [...(plan.inputs.toolsOf(hash) ?? [])] }]);
      return runTools({
        selectors: routine === null ? [] : selectorsOf(routine),
        lists: Object.fromEntries(known),
        outputSchema: routine?.output_schema ?? {},
      });
    },
    missingTool: (listed) => (routine === null ? [] : stepToolsOf(routine)).find((toolId) => toolIn(toolId, listed) === undefined) ?? null,
    checkOutput: (value) => facts.checkOutput(value),
    toolIdOf: (callId) => pending.find((call) => call.callId === callId)?.toolId ?? '',
    isRepeatable: (toolId) => toolIn(toolId, lists)?.repeatable ?? false,
  };
}
