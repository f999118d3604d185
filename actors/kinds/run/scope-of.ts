import { runTools } from '../../engine/run-tools.ts';
import type { Plan } from '../plan.ts';
import { factsOf, serversOf } from './facts-of.ts';
import type { RunScope } from './run-scope.ts';
import type { RunContext } from './types.ts';

/** The run in progress, for results of its effects. */
export function scopeOf(plan: Plan, { runId, lists, pending }: RunContext): RunScope {
  const facts = factsOf(plan, runId);
  const { routine } = facts;
  return {
    servers: serversOf(routine),
    tools() {
      const known = Object.entries(lists).map(([server, hash]) => [server, { hash, tools: [...(plan.inputs.toolsOf(hash) ?? [])] }]);
      return runTools({ selectors: routine?.tools ?? [], lists: Object.fromEntries(known), outputSchema: routine?.output_schema ?? {} });
    },
    checkOutput: (value) => facts.checkOutput(value),
    toolIdOf: (callId) => pending.find((call) => call.callId === callId)?.toolId ?? '',
    isRepeatable(toolId) {
      const [server = '', ...name] = toolId.split(':');
      const listHash = lists[server];
      const list = listHash === undefined ? null : plan.inputs.toolsOf(listHash);
      return list?.find((tool) => tool.name === name.join(':'))?.repeatable ?? false;
    },
  };
}
