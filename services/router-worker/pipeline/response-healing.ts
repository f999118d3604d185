import { setImmediate as nextTick } from 'node:timers/promises';
import { jsonrepair } from 'jsonrepair';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { asksForJson } from '#shared/contracts/router/plugins.ts';
import { compileSchema, problemOfSchema } from '#shared/json-schema.ts';
import { type Answer, finishReasonOf } from '#shared/surfaces/answer.ts';
import { jsonTextsIn } from './json-texts.ts';
import type { PluginStage } from './stage.ts';

/** Longer answers are left as they are: one repair holds the event loop, for a fifth of a second when the text is made for it. */
const MAX_HEALED_CHARS = 32 * 1_024;

/** Mends a whole answer that was asked for as JSON and does not parse. What can't be mended, or does not satisfy the schema when it is, stays as it is. */
export const responseHealing: PluginStage = {
  answer: async (answer, { response_format: format }, _, report) => {
    const text = isBroken(answer) ? await healed(answer.text, format) : null;
    if (asksForJson(format)) report?.({ type: 'response_healing', name: 'response-healing', summary: text === null ? 'unchanged' : 'repaired' });
    // The lengths are those of the model's text, which is what is billed.
    return text === null ? answer : { ...answer, text };
  },
};

/** One that ended for its length lacks what no repair knows; text beside a tool call is not the answer. */
function isBroken(answer: Answer): boolean {
  return finishReasonOf(answer) === 'stop' && answer.text.length <= MAX_HEALED_CHARS && parsed(answer.text) === undefined;
}

/** Null: it can't be. */
async function healed(text: string, format: ChatRequest['response_format']): Promise<string | null> {
  const fits = asksForJson(format) ? fitOf(format) : null;
  if (fits === null) return null;
  for (const { closed, whole } of jsonTextsIn(text)) {
    if (fits(parsed(closed))) return closed;
    // What follows the last bracket is cut off only where it can't belong to the JSON.
    for (const broken of new Set([whole, closed])) {
      await nextTick();
      const json = repaired(broken);
      if (fits(parsed(json))) return json;
    }
  }
  return null;
}

type Fit = (value: unknown) => boolean;

/** Null: nothing can be checked against the schema. */
function fitOf(format: ChatRequest['response_format']): Fit | null {
  if (format?.type !== 'json_schema') return isObject;
  const { schema } = format.json_schema;
  if (schema === undefined) return (value) => typeof value === 'object' && value !== null;
  if (problemOfSchema(schema) !== null) return null;
  const check = compileSchema(schema);
  return (value) => value !== undefined && check(value) === null;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined: not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Empty: it can't be, among others for nesting that overflows the stack. */
function repaired(text: string): string {
  try {
    return jsonrepair(text);
  } catch {
    return '';
  }
}
