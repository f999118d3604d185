import type { z } from 'zod';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/**
 * Names the first field that a request was refused for: `param` is its dotted path, such as `messages[0].content`, and `""` when it is
 * the body as a whole.
 */
export function offendingField(error: z.ZodError): { param: string; message: string } {
  const [issue] = error.issues;
  if (issue === undefined) return { param: '', message: 'is not accepted' };
  const found = innermost(issue, issue.path);
  return { param: dotted(found.path), message: found.issue.message };
}

/** Where a value has the right kind for one of several shapes, the fault inside it says more than "fits none of them". */
function innermost(issue: Issue, path: Path): { issue: Issue; path: Path } {
  if (issue.code !== 'invalid_union') return { issue, path };
  for (const [inner] of issue.errors) {
    if (inner !== undefined && inner.path.length > 0) return innermost(inner, [...path, ...inner.path]);
  }
  return { issue, path };
}

function dotted(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}
