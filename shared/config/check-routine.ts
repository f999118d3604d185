import { z } from 'zod';
import { type Routine, routine } from '../contracts/documents/routine.ts';
import { metaSchemaProblemsOf } from '../json-schema.ts';
import { type Checked, check, type Problem } from './problems.ts';
import { tolerantObject, tolerantText } from './tolerant.ts';

const tolerantSchema = z.record(z.string(), z.unknown()).nullable().catch(null);
/** What is looked at even when other fields have errors, so that all of them are reported at once. */
const withSchemas = tolerantObject({ kind: tolerantText, input_schema: tolerantSchema, output_schema: tolerantSchema });

/** Reads a routine, and checks by the meta-schema that its JSON Schemas are some. */
export function checkRoutine(value: unknown): Checked<Routine> {
  const read = check(routine, value);
  const problems = [...read.problems, ...schemaProblems(value)];
  return problems.length === 0 ? read : { value: null, problems };
}

function schemaProblems(value: unknown): Problem[] {
  const found = withSchemas.parse(value);
  if (found?.kind !== 'autonomous') return [];
  return (['input_schema', 'output_schema'] as const).flatMap((field) =>
    metaSchemaProblemsOf(found[field] ?? {}).map(({ path, expected }) => ({ path: [field, ...path], expected })),
  );
}
