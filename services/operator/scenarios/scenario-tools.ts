import type { ListedTool } from '#bus/messages/tool.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { ToolCallItem, ToolOutcome } from '../conversation/conversation.ts';
import type { ToolLists } from '../conversation/session-in-memory.ts';
import type { Scenario, ScenarioTool } from './scenario.ts';

type Answer = ScenarioTool['answers'][number];

/** Tools whose answers stand in the scenario: none is ever called. */
export class ScenarioTools {
  /** A list has the name of its server in place of a hash. */
  readonly lists: ToolLists;
  /** Calls for which the scenario has no answer, in words. */
  readonly unanswered: string[] = [];
  readonly #tools: Scenario['tools'];
  readonly #used = new Set<Answer>();

  constructor(tools: Scenario['tools']) {
    this.#tools = tools;
    const lists: Record<string, ListedTool[]> = {};
    for (const [id, { description = null, input_schema: inputSchema }] of Object.entries(tools)) {
      const [server, name] = [id.slice(0, id.indexOf(':')), id.slice(id.indexOf(':') + 1)];
      const list = lists[server] ?? [];
      lists[server] = list;
      list.push({ name, title: null, description, inputSchema, repeatable: true });
    }
    this.lists = { hashes: Object.fromEntries(Object.keys(lists).map((server) => [server, server])), toolsOf: (hash) => lists[hash] ?? null };
  }

  /** The first answer that fits and is not used yet; the last one that fits is used again. */
  outcomeOf({ toolId, arguments: given }: ToolCallItem): ToolOutcome {
    const fitting = this.#tools[toolId]?.answers.filter((answer) => answer.arguments === undefined || fits(answer.arguments, given)) ?? [];
    const answer = fitting.find((one) => !this.#used.has(one)) ?? fitting.at(-1);
    if (answer === undefined) {
      this.unanswered.push(`${toolId} ${canonicalJson(given)}`);
      return { type: 'failed', reason: 'unreachable', message: 'the scenario has no answer for this call' };
    }
    this.#used.add(answer);
    if (answer.error !== undefined) return { type: 'result', data: answer.error, metadata: {}, isError: true };
    return { type: 'result', data: answer.result, metadata: {}, isError: false };
  }
}

function fits(wanted: Record<string, unknown>, given: Record<string, unknown>): boolean {
  return Object.entries(wanted).every(([name, value]) => Object.hasOwn(given, name) && canonicalJson(given[name]) === canonicalJson(value));
}
