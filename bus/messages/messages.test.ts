import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deliveryWork } from './delivery.ts';
import { heartbeat, interestReply } from './heartbeat.ts';
import { routerCall } from './router.ts';
import { sessionCommand } from './session.ts';
import { toolWork } from './tool.ts';

const messages = { sessionCommand, routerCall, toolWork, deliveryWork, heartbeat, interestReply };

interface Shape {
  properties?: Record<string, Shape>;
  anyOf?: Shape[];
  oneOf?: Shape[];
  items?: Shape;
  const?: unknown;
  enum?: unknown[];
}

const shapeOf = (schema: z.ZodType): Shape => z.toJSONSchema(schema, { unrepresentable: 'any' }) as Shape;

/** A message's shape, or that of each of its kinds. */
const kindsOf = ({ oneOf, anyOf, ...shape }: Shape): Shape[] => (oneOf ?? anyOf)?.flatMap(kindsOf) ?? [shape];

function fieldsIn(shape: Shape): string[] {
  const own = Object.entries(shape.properties ?? {}).flatMap(([name, field]) => [name, ...fieldsIn(field)]);
  return [...own, ...[...(shape.oneOf ?? []), ...(shape.anyOf ?? []), ...(shape.items ? [shape.items] : [])].flatMap(fieldsIn)];
}

/** The values that `v` may have. */
const versionsOf = ({ properties }: Shape): unknown[] => properties?.['v']?.enum ?? [properties?.['v']?.const];

describe('messages', () => {
  it.each(Object.entries(messages))('DESIGN 3: each kind of %s has its version', (_, schema) => {
    for (const kind of kindsOf(shapeOf(schema))) expect(versionsOf(kind)).toContain(1);
  });

  it.each(Object.entries(messages))('DESIGN 11: %s has no field for a credential: keys are named by id, and resolved where they are used', (_, schema) => {
    // The caller's own request is opaque. `prompt_cache_key` in it groups requests, and opens nothing.
    const names = fieldsIn(shapeOf(schema)).filter((name) => name !== 'prompt_cache_key');

    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((name) => /key$|secret|password|credential|authori[sz]ation|bearer|^token$/i.test(name))).toEqual([]);
  });
});
