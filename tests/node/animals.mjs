// A vector store with two files, for the tests of file search.
import OpenAI, { toFile } from "openai";

const texts = {
  "llamas.md": "Llamas live in the Andes of Peru. They hum when they are content.",
  "penguins.md": "Penguins live on the coasts of Antarctica. They dive for fish.",
};

export const question = 'Use file search for "Where do llamas live?"';

// Upload the files and wait until they can be found. Returns the store and the ids of the files by their names.
export async function makeAnimals(baseURL) {
  const client = new OpenAI({ baseURL, apiKey: "key" });
  const store = await client.vectorStores.create({ name: "animals" });
  const ids = {};
  for (const [name, text] of Object.entries(texts)) {
    const file = await client.files.create({ file: await toFile(Buffer.from(text), name), purpose: "assistants" });
    await client.vectorStores.files.createAndPoll(store.id, { file_id: file.id }, { pollIntervalMs: 100 });
    ids[name] = file.id;
  }
  return { store: store.id, ids };
}
