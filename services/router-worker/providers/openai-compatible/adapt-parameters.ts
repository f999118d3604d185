import { z } from 'zod';
import { errorIn } from '../http-stream/to-error.ts';
import type { ParameterCompatibility } from './to-request.ts';

/** Dropping one of these would change what is asked. */
const ESSENTIAL: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'tools', 'tool_choice', 'stop', 'response_format']);
const UNSUPPORTED = /unsupported|not supported|does not support|unrecogni[sz]ed|unknown|unexpected|not permitted|extra (inputs|fields)|additional propert/i;
const QUOTED = /['"`]([a-z_]{1,40})['"`]/g;
/** Of xAI, in the names of its own models' interface. */
const NAMED_LAST = /not supported on this model: ([a-zA-Z]{1,40})/;

const refusal = z.object({
  param: z.string().nullish(),
  code: z.union([z.string(), z.number()]).nullish().catch(null),
});

/**
 * Finds in a 400 or 422 the parameter that the model doesn't support, and returns how to retry: with the token limit's other name, or without the parameter.
 * Null for other errors and essential parameters.
 *
 * @param text the error's body; servers differ in where they name the parameter, but nearly all quote it
 */
export function adaptParameters(text: string, body: Record<string, unknown>, compatibility: ParameterCompatibility): ParameterCompatibility | null {
  const parsed = refusal.safeParse(errorIn(text));
  const code = parsed.success ? String(parsed.data.code) : '';
  if (!UNSUPPORTED.test(text) && !/^un(supported|known)_/.test(code)) return null;
  const param = parsed.success ? (parsed.data.param?.split('.')[0] ?? null) : null;
  const quoted = [...text.matchAll(QUOTED)].map((match) => match[1] ?? '');
  const last = NAMED_LAST.exec(text)?.[1];
  if (last !== undefined) quoted.push(last.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  const isParameter = (name: string) => Object.hasOwn(body, name) && !ESSENTIAL.has(name);
  const parameter = param !== null && Object.hasOwn(body, param) ? param : quoted.find(isParameter);
  if (parameter === undefined || !isParameter(parameter)) return null;
  const refused = new Set([...compatibility.refused, parameter]);
  const otherName = parameter === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return parameter === compatibility.maxTokensField && !refused.has(otherName) ? { maxTokensField: otherName, refused } : { ...compatibility, refused };
}
