import type { CallResult, Execution } from '../../services/router-worker/call/execution.ts';
import type { Chance } from './random.ts';

type Completed = Extract<CallResult, { type: 'completed' }>;
type Request = Execution['call']['request'];

/** The function by which a model says that it leaves another one out. */
const LEAVE_OUT = 'leave_out';
/** The choice by which a routine is left. */
const LEAVE = 'none';

/** The answer to a question of the engine with a schema, drawn by chance from those that the question allows. */
export function answerText(request: Request, chance: Chance): string {
  const format = request.response_format;
  const asked = format?.type === 'json_schema' ? format.json_schema : null;
  const rationale = 'r';
  switch (asked?.name) {
    case 'next_step': {
      const { properties } = asked.schema as { properties: { choice: { enum: string[] } } };
      const choices = properties.choice.enum.filter((choice) => choice !== LEAVE || chance.oneIn(4));
      return JSON.stringify({ rationale, step_completed: chance.oneIn(2), choice: chance.pick(choices) });
    }
    case 'check_backtrack':
      return JSON.stringify({ rationale, requires_backtracking: chance.oneIn(4), same_process: chance.oneIn(2) });
    case 'select_node':
      return JSON.stringify({ rationale, ...selectedNode(request, chance) });
    case 'rewrite_query':
      return JSON.stringify({ query: chance.oneIn(4) ? '' : 'a query' });
    default:
      return JSON.stringify({
        verdicts: itemsOf(request).map((_, index) => ({ id: index + 1, rationale, applies: !chance.oneIn(4), followed: chance.oneIn(2) })),
      });
  }
}

/** The answer to the engine's question which tools have to run: some of them, whose arguments are of this call alone. */
export function toolCallsFor({ tools = [] }: Request, callId: string, chance: Chance): Completed['toolCalls'] {
  const names = tools.map((tool) => tool.function.name).filter((name) => name !== LEAVE_OUT);
  return names.map((name, index) => {
    const id = `c${index + 1}`;
    const leftOut = { function: name, rationale: 'r', outcome: 'not_needed' };
    if (chance.oneIn(3)) return { id, name: LEAVE_OUT, arguments: JSON.stringify(leftOut) };
    return { id, name, arguments: JSON.stringify({ callId, n: index + 1 }) };
  });
}

function selectedNode(request: Request, chance: Chance) {
  const nodes = itemsOf(request).slice(1) as { id: number; visited: boolean; followed_by: { id?: number }[] }[];
  const visited = nodes.filter((node) => node.visited);
  const target = chance.pick(visited.length > 0 ? visited : nodes);
  const following = target.followed_by.flatMap(({ id }) => id ?? []);
  return { backtrack_to: target.id, advanced: [], next_step: chance.pick([0, target.id, ...following]) };
}

/** The last message's lines of JSON. */
function itemsOf({ messages }: Request): unknown[] {
  const lines = String(messages.at(-1)?.content).split('\n');
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as unknown);
}
