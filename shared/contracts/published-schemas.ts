import { z } from 'zod';
import { callbackPayload } from './agent/callback.ts';
import { eventSchemas } from './agent/event-schema.ts';
import { glossary } from './documents/glossary.ts';
import { macro } from './documents/macro.ts';
import { policy } from './documents/policy.ts';
import { prompt } from './documents/prompt.ts';
import { routine } from './documents/routine.ts';
import { variableSet } from './documents/variable-set.ts';
import { allowListEntry } from './manifest/hosts.ts';
import { manifest } from './manifest/manifest.ts';

/** Version of the manifest's schema that is read here. */
const MANIFEST_VERSION = '6.1.5';

type JsonSchema = Record<string, unknown>;

/** JSON Schemas (2020-12) of what others write or read, by path in the folder `schemas`. What only code can check, such as a reference to a step that is absent, is not in them. */
export function publishedSchemas(): ReadonlyMap<string, JsonSchema> {
  const documents = Object.entries({ prompt, routine, policy, glossary, macro, 'variable-set': variableSet });
  return new Map([
    [`manifest/${MANIFEST_VERSION}.json`, published(`manifest:${MANIFEST_VERSION}`, 'Manifest of an agent', manifest)],
    ...documents.map(([kind, schema]) => [`documents/${kind}.json`, published(`document:${kind}`, `Document of the kind ${kind}`, schema)] as const),
    ['callback/1.json', published('callback:1', 'Callback of a settled run', callbackPayload)],
    ['events.json', eventsSchema()],
  ]);
}

function published(name: string, title: string, schema: z.ZodType): JsonSchema {
  const { $schema, ...rest } = jsonSchemaOf(schema);
  return { $schema, $id: `urn:switchyard:${name}`, title, ...rest };
}

/** `anyOf`: an event without `kind` may have the form of several kinds. */
function eventsSchema(): JsonSchema {
  const kinds = Object.entries(eventSchemas).map(([kind, schema]) => {
    const { $schema, ...rest } = jsonSchemaOf(schema);
    return [kind, rest] as const;
  });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:switchyard:events',
    title: "Event of a session's log",
    anyOf: kinds.map(([kind]) => ({ $ref: `#/$defs/${kind}` })),
    $defs: Object.fromEntries(kinds),
  };
}

/** As a writer sends it: fields with a default may be absent. */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      // Its pattern is for the normalised form.
      if (zodSchema === allowListEntry) delete jsonSchema.pattern;
      // `format` says it.
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    },
  });
}
