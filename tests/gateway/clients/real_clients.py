"""real_clients.py CLIENT URL MODEL ACT... - what people's clients do, each act by the client of that
name: openai, anthropic or ollama. Prints one JSON object: what each act gave. Run by the Python of
build/python."""

import base64
import io
import json
import os
import sys
import time

URL, MODEL = sys.argv[2], sys.argv[3]
HELLO = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def refused(act, *kinds):
    """What a call is refused with, and after how many seconds."""
    began = time.monotonic()
    try:
        act()
    except kinds as error:
        return [str(error), time.monotonic() - began]
    return ["it was answered", time.monotonic() - began]


class OpenAI:
    def late(self):
        return refused(self.chat, self.openai.APIError)

    def late_stream(self):
        return refused(self.stream, self.openai.APIError)

    def __init__(self):
        import openai
        self.openai = openai
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0, timeout=120)

    def create(self, model=MODEL, **more):
        return self.client.chat.completions.create(model=model, messages=more.pop("messages", HELLO),
                                                   max_tokens=8, **more)

    def models(self):
        return [model.id for model in self.client.models.list()]

    def chat(self):
        answer = self.create()
        return [answer.choices[0].message.content, answer.usage.completion_tokens]

    def stream(self):
        chunks = list(self.create(stream=True))
        return ["".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
                any(chunk.usage for chunk in chunks)]

    def usage(self):
        chunks = list(self.create(stream=True, stream_options={"include_usage": True}))
        return chunks[-1].usage.completion_tokens

    def tools(self):
        return self.create(tools=[TOOL]).choices[0].message.tool_calls[0].function.name

    def embeddings(self):
        return self.client.embeddings.create(model=MODEL, input="hello").data[0].embedding

    def image(self):
        url = "data:image/png;base64," + base64.b64encode(os.urandom(15 << 20)).decode()
        answer = self.create(messages=[{"role": "user", "content": [
            {"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]}])
        return answer.choices[0].message.content

    def audio(self):
        sound = io.BytesIO(os.urandom(100000))
        sound.name = "a.wav"
        return self.client.audio.transcriptions.create(model=MODEL, file=sound).text

    def error(self):
        try:
            self.create("nothing")
        except self.openai.NotFoundError as refused:
            return [refused.code, refused.type]
        return None

    def cancel(self):
        stream = self.create(stream=True, extra_body={"mock": {"tokens": 10000, "gap": 0.02}})
        next(iter(stream))
        stream.close()
        return "closed"


class Anthropic:
    def late(self):
        return refused(self.chat, self.anthropic.APIError)

    def late_stream(self):
        return refused(self.stream, self.anthropic.APIError)

    def __init__(self):
        import anthropic
        self.anthropic = anthropic
        self.client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0, timeout=120)

    def chat(self):
        answer = self.client.messages.create(model=MODEL, max_tokens=8, messages=HELLO)
        return [answer.content[0].text, answer.usage.output_tokens]

    def stream(self):
        with self.client.messages.stream(model=MODEL, max_tokens=8, messages=HELLO) as stream:
            text = "".join(stream.text_stream)
            return [text, stream.get_final_message().usage.output_tokens]

    def error(self):
        try:
            self.client.messages.create(model="nothing", max_tokens=8, messages=HELLO)
        except self.anthropic.NotFoundError as refused:
            return refused.body["error"]["type"]
        return None

    def cancel(self):
        with self.client.messages.stream(model=MODEL, max_tokens=8, messages=HELLO,
                                         extra_body={"mock": {"tokens": 10000, "gap": 0.02}}) as stream:
            next(iter(stream))
        return "closed"


class Ollama:
    def late(self):
        return refused(self.chat, self.ollama.ResponseError)

    def late_stream(self):
        return refused(self.stream, self.ollama.ResponseError)

    def __init__(self):
        import ollama
        self.ollama = ollama
        self.client = ollama.Client(host=URL, timeout=120)

    def models(self):
        return [model.model for model in self.client.list().models]

    def chat(self):
        answer = self.client.chat(model=MODEL, messages=HELLO)
        return [answer.message.content, answer.eval_count]

    def stream(self):
        parts = list(self.client.chat(model=MODEL, messages=HELLO, stream=True))
        return ["".join(part.message.content or "" for part in parts), parts[-1].eval_count]

    def embeddings(self):
        return list(self.client.embed(model=MODEL, input="hello").embeddings[0])

    def error(self):
        try:
            self.client.chat(model="nothing", messages=HELLO)
        except self.ollama.ResponseError as refused:
            return refused.status_code
        return None


if __name__ == "__main__":
    client = {"openai": OpenAI, "anthropic": Anthropic, "ollama": Ollama}[sys.argv[1]]()
    print(json.dumps({act: getattr(client, act)() for act in sys.argv[4:]}))
