// Writes the types of the API from its OpenAPI document, which comes on the standard input: one
// TypeScript type for each schema, by its name. `make web` runs it before types are checked.
// What it does not know in a schema is a failure, not `any`.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const target = join(dirname(fileURLToPath(import.meta.url)), 'src/generated/api.ts');
const PLAIN = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };
/** What narrows a value and not its type. */
const BOUNDS = new Set([
  'description', 'default', 'examples', 'format', 'pattern', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum',
  'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'propertyNames',
]);

/** The TypeScript of one schema. */
function typeOf(schema) {
  const { type, properties, required, additionalProperties, items, anyOf, oneOf, enum: words, const: word, $ref, ...rest } = schema;
  const unknown = Object.keys(rest).filter((name) => !BOUNDS.has(name));
  if (unknown.length > 0) throw new Error(`It does not know ${unknown.join(', ')} in ${JSON.stringify(schema)}`);
  if ($ref !== undefined) return `Schemas['${$ref.split('/').at(-1)}']`;
  if (words !== undefined) return words.map((one) => JSON.stringify(one)).join(' | ');
  if (word !== undefined) return JSON.stringify(word);
  if (anyOf ?? oneOf) return [...new Set((anyOf ?? oneOf).map(typeOf))].join(' | ');
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one })).join(' | ');
  if (type === 'array') return `(${typeOf(items ?? {})})[]`;
  if (type === 'object') return properties ? objectOf(properties, required ?? []) : mapOf(additionalProperties);
  if (type === undefined) return 'unknown';
  if (PLAIN[type] === undefined) throw new Error(`It does not know the type ${type}`);
  return PLAIN[type];
}

function mapOf(values) {
  return `{ [name: string]: ${typeof values === 'object' ? typeOf(values) : 'unknown'} }`;
}

/** What has a default is always there in a reply; what has none and is not required may be absent. */
function objectOf(properties, required) {
  const lines = Object.entries(properties).map(([name, schema]) => {
    const isThere = required.includes(name) || 'default' in schema;
    return `${said(schema.description, '  ')}  ${name}${isThere ? '' : '?'}: ${typeOf(schema)};\n`;
  });
  return `{\n${lines.join('')}}`;
}

function said(words, indent) {
  return words ? `${indent}/** ${words.replaceAll('*/', '* /')} */\n` : '';
}

const { schemas } = JSON.parse(readFileSync(0, 'utf8')).components;
const types = Object.entries(schemas).map(
  ([name, schema]) => `${said(schema.description, '')}export type ${name} = ${typeOf(schema)};\n`,
);
const all = Object.keys(schemas).map((name) => `  ${name}: ${name};\n`);
mkdirSync(dirname(target), { recursive: true });
writeFileSync(
  target,
  `/** Made by web/types.mjs from the OpenAPI document: nobody changes it by hand. */\n\n${types.join('\n')}
/** All of them, by name. */
export interface Schemas {\n${all.join('')}}\n`,
);
