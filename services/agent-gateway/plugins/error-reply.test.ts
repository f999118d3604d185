import { expect, it } from 'vitest';
import { invalidField, replyTo } from './error-reply.ts';

it('shortens a field name that is as long as a body', () => {
  const { status, body } = replyTo(invalidField(`/input/${'f'.repeat(900_000)}`, 'must be a string'));

  expect(status).toBe(400);
  expect(body).toMatchObject({ error: expect.stringMatching(/^input\.f+…$/), path: expect.stringMatching(/^\/input\/f+…$/) });
  expect(JSON.stringify(body).length).toBeLessThan(4_000);
});
