import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readEventsQuery } from '../contracts/agent/read-events.ts';
import { listRunsQuery, triggerRequest } from '../contracts/agent/run.ts';
import { createSessionRequest, patchSessionRequest, postEventRequest, setEventWebhookRequest } from '../contracts/agent/session.ts';
import { chatRequest } from '../contracts/router/chat-request.ts';
import { offendingField } from '../contracts/router/offending-field.ts';
import { issueSentence } from './issue-sentence.ts';

function sentencesOf(schema: z.ZodType, value: unknown): string[] {
  return schema.safeParse(value, { error: issueSentence }).error?.issues.map(({ message }) => message) ?? [];
}

const union = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]);

describe('the sentence of an issue', () => {
  it.each<[string, z.ZodType, unknown, string]>([
    ['a missing value', z.string(), undefined, 'is missing; it must be a string'],
    ['a number for a text', z.string(), 7, 'must be a string; put it in quotes'],
    ['a list for a text', z.string(), [], 'must be a string'],
    ['a text for a number', z.number(), 'x', 'must be a number'],
    ['a fraction', z.int(), 1.5, 'must be a whole number'],
    ['a text for an object', z.object({}), 'x', 'must be an object'],
    ['a text for a map', z.record(z.string(), z.number()), 'x', 'must be an object'],
    ['a value that may not be given', z.never(), 1, 'must not be given'],
    ['a value that there is not', z.enum(['a', 'b']), 'c', 'must be one of "a", "b"'],
    ['another literal', z.literal('a'), 'c', 'must be "a"'],
    ['an empty text', z.string().min(1), '', 'must not be empty'],
    ['a short text', z.string().min(3), 'x', 'must have at least 3 characters'],
    ['a long text', z.string().max(1), 'xy', 'must have at most 1 character'],
    ['a text of another length', z.string().length(2), 'xyz', 'must have exactly 2 characters'],
    ['an empty list', z.array(z.string()).min(1), [], 'must have at least 1 entry'],
    ['a long list', z.array(z.string()).max(2), ['', '', ''], 'must have at most 2 entries'],
    ['a number that is too low', z.number().min(0), -1, 'must be at least 0'],
    ['a number at an open bound', z.number().gt(0), 0, 'must be greater than 0'],
    ['a number that is too high', z.number().max(2), 3, 'must be at most 2'],
    ['a number at an open upper bound', z.number().lt(2), 2, 'must be less than 2'],
    ['a number between the steps', z.number().multipleOf(5), 7, 'must be a multiple of 5'],
    ['a text that is no URL', z.url(), 'x', 'must be a URL'],
    ['a URL of another scheme', z.url({ protocol: /^https$/ }), 'http://a.example', 'must be a URL whose scheme matches ^https$'],
    ['a text beside a pattern', z.string().regex(/^a+$/), 'b', 'must match the pattern /^a+$/'],
    ['a text with another beginning', z.string().startsWith('sk-'), 'b', 'must begin with "sk-"'],
    ['fields that are not known', z.strictObject({}), { a: 1, b: 2 }, 'has fields that are not known: "a", "b"'],
    ['a key that is too short', z.record(z.string().min(2), z.number()), { b: 1 }, 'has a key that must have at least 2 characters'],
    ['a discriminator that there is not', union, { kind: 'c' }, 'must be one of "a", "b"'],
    ['a missing discriminator', union, {}, 'is missing; it must be one of "a", "b"'],
    ['no kind of a union', z.union([z.string(), z.array(z.string())]), 5, 'must be a string or a list'],
    ['no value of a union', z.union([z.enum(['a', 'b']), z.object({})]), 'c', 'must be one of "a", "b" or an object'],
    ['none of several shapes', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), {}, 'has none of the accepted forms'],
    ['a check of the schema without words', z.string().refine(() => false), 'x', 'is not accepted'],
  ])('%s', (_, schema, value, sentence) => {
    expect(sentencesOf(schema, value)).toContain(sentence);
  });

  it('uses the message of a schema where it has one', () => {
    expect(sentencesOf(z.string().regex(/^a$/, 'must be a name'), 'b')).toEqual(['must be a name']);
  });

  it('never quotes the value that was found', () => {
    const secret = 'sk-secret-value';
    for (const schema of [z.number(), z.enum(['a']), z.url(), z.string().max(3), z.union([z.number(), z.boolean()])]) {
      expect(sentencesOf(schema, secret).join()).not.toContain(secret);
    }
  });
});

const corpus = new URL('../../tests/corpus/', import.meta.url);

/** Invalid requests of a corpus folder, or of one file. */
function refusedIn(folder: string, only?: string): { file: string; case: string; request: unknown }[] {
  const files = readdirSync(new URL(`${folder}/invalid/`, corpus)).filter((file) => only === undefined || file === `${only}.json`);
  const cases = z.array(z.object({ case: z.string(), request: z.unknown() })).min(1);
  return files.flatMap((file) =>
    cases.parse(JSON.parse(readFileSync(new URL(`${folder}/invalid/${file}`, corpus), 'utf8'))).map((found) => ({ file, ...found })),
  );
}

/** Our predicates; zod's own messages begin with a capital. */
const SENTENCE = /^(must|has|is|can not) /;

describe('a request that is refused', () => {
  it.each(refusedIn('router'))('has a sentence with the reason, router, $file: $case', ({ request }) => {
    const { error } = chatRequest.safeParse(request, { error: issueSentence });

    expect(error && offendingField(error).message).toMatch(SENTENCE);
  });

  describe.each([
    ['create-session', createSessionRequest],
    ['patch-session', patchSessionRequest],
    ['event-webhook', setEventWebhookRequest],
    ['post-event', postEventRequest],
    ['read-events', readEventsQuery],
    ['trigger', triggerRequest],
    ['list-runs', listRunsQuery],
  ])('%s', (name, schema) => {
    it.each(refusedIn('agent', name))('has a sentence with the reason: $case', ({ request }) => {
      for (const sentence of sentencesOf(schema, request)) expect(sentence).toMatch(SENTENCE);
    });
  });

  it('lists the values of a role, and the kinds of value where several are accepted', () => {
    const messageOf = (request: unknown) => {
      const { error } = chatRequest.safeParse(request, { error: issueSentence });
      return error && offendingField(error).message;
    };

    expect(messageOf({ messages: [{ role: 'robot' }] })).toBe('must be one of "system", "developer", "user", "assistant", "tool"');
    expect(messageOf({ messages: [{ role: 'user', content: 5 }] })).toBe('must be a string or a list');
    expect(messageOf({ messages: [] })).toBe('must have at least 1 entry');
  });
});
