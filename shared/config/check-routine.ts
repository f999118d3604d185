import { z } from 'zod';
import { type Routine, routine } from '../contracts/documents/routine.ts';
import { metaSchemaProblemsOf } from '../json-schema.ts';
import { type Checked, check, type Problem } from './problems.ts';
import { tolerantObject, tolerantText } from './tolerant.ts';

const tolerantSchema = z.record(z.string(), z.unknown()).nullable().catch(null);
/** Checked even when other fields have errors, so that all are reported at once. */
const withSchemas = tolerantObject({ kind: tolerantText, input_schema: tolerantSchema, output_schema: tolerantSchema });

/** Parses a routine, and checks its JSON Schemas against the meta-schema. */
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
