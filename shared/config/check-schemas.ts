import { problemOfSchema } from '../json-schema.ts';
import type { NamedDocuments, Report } from './named-documents.ts';

/** Compiles the schemas of autonomous routines, so that an unusable or slow one fails the start, not the first input. */
export function checkSchemas({ routines }: NamedDocuments, report: Report): void {
  for (const { file, document } of routines) {
    if (document.kind !== 'autonomous') continue;
    for (const field of ['input_schema', 'output_schema'] as const) {
      const problem = problemOfSchema(document[field]);
      if (problem !== null) report(file, [field, ...problem.path], problem.expected);
    }
  }
}
