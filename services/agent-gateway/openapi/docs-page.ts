import { z } from 'zod';
import { escaped, plainPage } from '#shared/http-server/plain-page.ts';

const content = z.record(z.string(), z.object({ schema: z.unknown() })).optional();

const operation = z.object({
  summary: z.string(),
  parameters: z.array(z.object({ name: z.string(), in: z.string(), required: z.boolean().optional(), schema: z.unknown() })).default([]),
  requestBody: z.object({ content }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string().optional(), content })),
});
type Operation = z.infer<typeof operation>;

/** What the page shows of an OpenAPI description. */
const description = z.object({
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()).default({}) }),
});

/** A description as a page of HTML without scripts. @throws a ZodError for what is no such description */
export function docsPage(document: unknown): string {
  const { info, paths, components } = description.parse(document);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, found]) => [`${method.toUpperCase()} ${path}`, found] as const),
  );
  const list = operations.map(([name]) => `<li><a href="#${idOf(name)}">${escaped(name)}</a></li>`).join('\n');
  const shapes = Object.entries(components.schemas).map(([name, schema]) => `<h3>${escaped(name)}</h3>\n${schemaOf(schema)}`);
  const machine = '<p>For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>';
  return plainPage(
    `${info.title} ${info.version}`,
    `${machine}\n<ul>\n${list}\n</ul>\n${operations.map(([name, found]) => section(name, found)).join('\n')}\n<h2>Schemas</h2>\n${shapes.join('\n')}`,
  );
}

function section(name: string, { summary, parameters, requestBody, responses }: Operation): string {
  const parts = [`<h2 id="${idOf(name)}">${escaped(name)}</h2>`, `<p>${escaped(summary)}</p>`];
  if (parameters.length > 0) {
    const items = parameters.map(
      ({ name: parameter, in: place, required, schema }) =>
        `<li>${escaped(parameter)} (${escaped(place)}${required === true ? ', required' : ''}) ${schemaOf(schema)}</li>`,
    );
    parts.push(`<h3>Parameters</h3>\n<ul>\n${items.join('\n')}\n</ul>`);
  }
  if (requestBody !== undefined) parts.push(`<h3>Request</h3>\n${bodiesOf(requestBody)}`);
  for (const [status, response] of Object.entries(responses)) parts.push(`<h3>${escaped(status)}</h3>\n${bodiesOf(response)}`);
  return parts.join('\n');
}

function bodiesOf({ content: bodies = {} }: { content?: z.infer<typeof content> }): string {
  const shown = Object.entries(bodies).map(([media, { schema }]) => `<details><summary>${escaped(media)}</summary>${schemaOf(schema)}</details>`);
  return shown.length === 0 ? '<p>No body.</p>' : shown.join('\n');
}

function schemaOf(schema: unknown): string {
  return `<pre>${escaped(JSON.stringify(schema, null, 2))}</pre>`;
}

function idOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
