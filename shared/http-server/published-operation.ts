import type { z } from 'zod';

/** What a status answers: an object of JSON, or on demand another form of it; another media type; or nothing. */
export type PublishedBody = { json: z.ZodType; or?: string } | { media: string } | null;

/** What the published description of an API says of an operation, beside the schemas of its request. */
export interface PublishedOperation<Access extends string> {
  summary: string;
  access: Access;
  /** Those that the request may have, beside what all have. Absent: none. */
  headers?: z.ZodType;
  answers: Readonly<Record<number, PublishedBody>>;
  /** Statuses of the server's error body. */
  refusals: readonly number[];
}
