import { Agent, request as send } from 'node:http';
import { expect } from 'vitest';
import { z } from 'zod';
import { readEvents } from '../../shared/surfaces/responses/test-support/read-events.ts';
import type { HostileBody } from './mutate-body.ts';

/** Beyond it a request hangs; no limit of the router is as long in these tests. */
const HANGS_AFTER_MS = 60_000;

export interface HostileReply {
  status: number;
  contentType: string;
  generationId: string | null;
  text: string;
}

/** Sends a body to a router on a port. @throws when the answer does not end */
export function hostileSender(url: string): {
  send(path: string, method: string, headers: Record<string, string>, body: HostileBody): Promise<HostileReply>;
  close(): void;
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  return {
    send: (path, method, headers, { bytes, headers: ofBody }) =>
      new Promise((resolve, reject) => {
        const request = send(`${url}${path}`, { method, agent, headers: { ...headers, ...ofBody, 'content-length': bytes.length } }, (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.on('error', reject);
          response.on('end', () => {
            clearTimeout(timer);
            resolve({
              status: response.statusCode ?? 0,
              contentType: response.headers['content-type'] ?? '',
              generationId: response.headers['x-generation-id']?.toString() ?? null,
              text: Buffer.concat(pieces).toString(),
            });
          });
        });
        const timer = setTimeout(() => request.destroy(new Error('the request hangs')), HANGS_AFTER_MS);
        request.on('error', (error) => {
          clearTimeout(timer);
          reject(error);
        });
        request.end(bytes);
      }),
    close: () => agent.destroy(),
  };
}

/** As router-facts 4 has it; `param` is a path, or empty. */
const errorBody = z.strictObject({
  error: z.strictObject({
    code: z.number().int(),
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string(),
    metadata: z.looseObject({ error_type: z.string().min(1) }).optional(),
  }),
});

/** A refusal of the request: its status is that of its body. @returns the parameter that it names */
export function expectRefusal({ status, contentType, text }: HostileReply): string {
  expect(contentType).toMatch(/^application\/json/);
  const { error } = errorBody.parse(JSON.parse(text));
  expect(error.code).toBe(status);
  expect(error.message).not.toMatch(/TypeError|RangeError|ZodError|Cannot read prop|node:internal|:\d+:\d+\)?$/);
  return error.param;
}

const completion = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  choices: z.array(z.looseObject({ finish_reason: z.string() })).length(1),
});

const response = z.looseObject({ id: z.string(), object: z.literal('response'), status: z.enum(['completed', 'incomplete']) });

/** The same of /responses, whose events have numbers. */
export function expectResponse({ contentType, text }: HostileReply): void {
  if (contentType.startsWith('application/json')) {
    response.parse(JSON.parse(text));
    return;
  }
  expect(contentType).toMatch(/^text\/event-stream/);
  const events = readEvents(text);
  expect(events[0]?.type).toBe('response.created');
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  response.parse(events.at(-1)?.['response']);
}

/** A whole answer, or a stream that ends in order and has no error. */
export function expectAnswer({ contentType, text }: HostileReply): void {
  if (contentType.startsWith('application/json')) {
    const { choices } = completion.parse(JSON.parse(text));
    expect(choices[0]?.finish_reason).not.toBe('error');
    return;
  }
  expect(contentType).toMatch(/^text\/event-stream/);
  const lines = text.split('\n').filter((line) => line.startsWith('data: '));
  expect(lines.at(-1)).toBe('data: [DONE]');
  for (const line of lines.slice(0, -1)) expect(JSON.parse(line.slice('data: '.length))).not.toHaveProperty('error');
}
